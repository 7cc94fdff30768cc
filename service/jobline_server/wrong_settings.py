"""Explains wrong settings: the name, what is allowed, and the value with its source."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args, get_origin

from pydantic import ByteSize, ValidationError
from pydantic.fields import FieldInfo

from jobline_server.nearest import nearest

SEE_HELP = "see `jobline serve --help`"

SIZE_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_NUMBERS = {int: "a whole number", float: "a number", ByteSize: "a size such as 64MiB"}


def explain(
    error: ValidationError,
    fields: Mapping[str, FieldInfo],
    origin: Callable[[str, object], str],
) -> str:
    """Returns one line per problem. `origin` returns the value of a setting and its source."""
    lines = []
    for problem in error.errors(include_url=False, include_context=False):
        name = ".".join(str(part) for part in problem["loc"])
        if not name:  # settings that do not go together: the message names them
            lines.append(_text_of(problem["msg"]))
            continue
        if problem["type"] == "extra_forbidden":
            reason = f"no such setting{nearest(name, fields)}; {SEE_HELP}"
        elif problem["type"] == "value_error":
            reason = _text_of(problem["msg"])
        else:
            reason = _allowed(fields[name]) or problem["msg"]
        lines.append(f"{name}: {reason} (given: {origin(name, problem['input'])})")
    return "\n".join(lines)


def in_file(name: str, value: object, file: object) -> str:
    """Returns a setting as its line in the file."""
    return f"{name} = {json.dumps(value, default=str, ensure_ascii=False)} in {file}"


def _text_of(message: str) -> str:
    return message.removeprefix("Value error, ")


def _allowed(info: FieldInfo) -> str:
    """Returns what is allowed for a setting; "" where pydantic's own message is used."""
    kind: Any = info.annotation
    if get_origin(kind) is Literal:
        return f"must be one of {', '.join(get_args(kind))}"
    if kind is bool:
        return "must be true or false"
    if kind not in _NUMBERS:
        return ""
    minimum = next((bound.ge for bound in info.metadata if hasattr(bound, "ge")), None)
    maximum = next((bound.le for bound in info.metadata if hasattr(bound, "le")), None)
    show = _size if kind is ByteSize else _number
    bounds = "" if minimum is None or maximum is None else f", {show(minimum)} … {show(maximum)}"
    return f"must be {_NUMBERS[kind]}{bounds}"


def _number(bound: float) -> str:
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:,g}"


def _size(bound: float) -> str:
    for size, unit in SIZE_UNITS:
        if bound >= size and bound % size == 0:
            return f"{bound // size:,} {unit}"
    return f"{bound:,}"
