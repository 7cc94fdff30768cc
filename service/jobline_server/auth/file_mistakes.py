"""Says the mistakes of the file of keys and roles that its model finds: where, what to write."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from jobline_server.nearest import nearest

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}")
NAME_SAID = "must be 1 to 128 of A-Z a-z 0-9 . _ @ + -, the first a letter or digit"
# What TOML takes as a name of a table without quotes.
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_VALUE_CHARACTERS_MAX = 60

Place = Sequence[str | int]
Names = Callable[[Place], Collection[str]]
"""Returns the names that a table at a place may have."""


def said_of(problem: Any, tables: dict[str, Any], names: Names) -> str:
    """Returns a mistake that the model found, as one line."""
    place: tuple[str | int, ...] = problem["loc"]
    if problem["type"] == "extra_forbidden":
        table, name = place[:-1], str(place[-1])
        where = f"{place_of(table, tables)}." if table else ""
        return f"{where}{name}: no such name{nearest(name, names(table))}"
    return f"{place_of(place, tables)}: {_what_of(problem, _value_at(place, tables))}"


def _what_of(problem: Any, value: object) -> str:
    place, kind = problem["loc"], problem["type"]
    if place == ("roles",) and kind == "dict_type":
        return "write [[roles.NAME]], with the name of a role"
    if kind == "list_type" and isinstance(value, dict) and _is_table(place):
        return f"write [[{'.'.join(map(_quoted, place))}]], with two brackets"
    if kind == "list_type":
        return f"must be a list, as in {place[-1]} = [ … ]"
    if kind == "literal_error":
        known = _WORD.findall(problem["ctx"]["expected"])
        near = nearest(value, known) if isinstance(value, str) else ""
        return f"must be one of {', '.join(known)} (given: {_shown(value)}){near}"
    return str(problem["msg"]).removeprefix("Value error, ")


_WORD = re.compile(r"'(\w+)'")


def _is_table(place: tuple[str | int, ...]) -> bool:
    """Returns whether what stands there is written as tables: [[keys]], [[roles.producer]]."""
    return len(place) == (2 if place[0] == "roles" else 1)


def _quoted(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    cut = len(text) > _VALUE_CHARACTERS_MAX
    return f"{text[:_VALUE_CHARACTERS_MAX]}…" if cut else text


def _along(place: Place, tables: Any) -> Iterator[Any]:
    """Yields what stands at each step to a place; None from where there is nothing."""
    here = tables
    for step in place:
        try:
            here = here[step]
        except (LookupError, TypeError):
            here = None
        yield here


def _value_at(place: Place, tables: Any) -> object:
    *_, value = (tables, *_along(place, tables))
    return value


def place_of(place: Place, tables: Any) -> str:
    """Returns where something stands: `keys[1] (shop).roles[0]`."""
    text = ""
    for step, here in zip(place, _along(place, tables), strict=True):
        text += f"[{step}]" if isinstance(step, int) else f"{'.' if text else ''}{step}"
        name = here.get("name") if isinstance(here, dict) else None
        if isinstance(name, str) and NAME.fullmatch(name):
            text += f" ({name})"
    return text
