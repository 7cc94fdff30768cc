"""What is wrong with a setting, as a line for whoever wrote it: its name, what is allowed, and what
was given where.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import Any, Literal, get_args, get_origin

from pydantic import ByteSize, ValidationError
from pydantic.fields import FieldInfo

SEE_HELP = "see `jobline serve --help`"

SIZE_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_NUMBERS = {int: "a whole number", float: "a number", ByteSize: "a size such as 64MiB"}


def explain(
    error: ValidationError,
    fields: Mapping[str, FieldInfo],
    origin: Callable[[str, object], str],
) -> str:
    """A line per problem. `origin` says what was given for a setting, and where."""
    lines = []
    for problem in error.errors(include_url=False, include_context=False):
        name = ".".join(str(part) for part in problem["loc"])
        if not name:  # settings that do not go together: the message names them
            lines.append(_own_words(problem["msg"]))
            continue
        if problem["type"] == "extra_forbidden":
            said = f"no such setting{nearest(name, fields)}; {SEE_HELP}"
        elif problem["type"] == "value_error":
            said = _own_words(problem["msg"])
        else:
            said = _allowed(fields[name]) or problem["msg"]
        lines.append(f"{name}: {said} (given: {origin(name, problem['input'])})")
    return "\n".join(lines)


def nearest(name: str, known: Collection[str], *, prefix: str = "") -> str:
    """What may have been meant by a name that is not known, as the end of a sentence. A `prefix`
    that all of them have makes none of them like another.
    """
    near = get_close_matches(name.removeprefix(prefix), [one[len(prefix) :] for one in known], n=1)
    return f" (did you mean {prefix}{near[0]}?)" if near else ""


def in_file(name: str, value: object, file: object) -> str:
    """A line of a settings file."""
    return f"{name} = {json.dumps(value, default=str, ensure_ascii=False)} in {file}"


def _own_words(message: str) -> str:
    return message.removeprefix("Value error, ")


def _allowed(info: FieldInfo) -> str:
    """What a setting may be; "" where pydantic's own sentence must do."""
    kind: Any = info.annotation
    if get_origin(kind) is Literal:
        return f"must be one of {', '.join(get_args(kind))}"
    if kind is bool:
        return "must be true or false"
    if kind not in _NUMBERS:
        return ""
    least = next((bound.ge for bound in info.metadata if hasattr(bound, "ge")), None)
    most = next((bound.le for bound in info.metadata if hasattr(bound, "le")), None)
    show = _size if kind is ByteSize else _number
    span = f", {show(least)} … {show(most)}" if least is not None and most is not None else ""
    return f"must be {_NUMBERS[kind]}{span}"


def _number(bound: float) -> str:
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:,g}"


def _size(bound: float) -> str:
    for size, unit in SIZE_UNITS:
        if bound >= size and bound % size == 0:
            return f"{bound // size:,} {unit}"
    return f"{bound:,}"
