"""Messages of the protocol into the frozen dataclasses that the client returns.

`read(kind, message)` fills each field of `kind` from the message's field of the same name, as its
type hint says: moments are datetimes in UTC, spans timedeltas, enums members, repeated fields
tuples. A field whose type allows None is None where the message does not have it.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from jobline._enums import known
from jobline._times import from_duration, from_timestamp

T = TypeVar("T")
Convert = Callable[[Any], Any]


_FIELDS: dict[type[Any], list[tuple[str, Convert | None, bool]]] = {}
"""Of each dataclass that was read once: each field's name, converter, and whether it may miss."""


def read(kind: type[T], message: Any, **computed: Any) -> T:
    """Returns the value of a message; `computed` are fields that do not come from a field of their
    name.
    """
    found = dict(computed)
    if kind not in _FIELDS:
        _FIELDS[kind] = _fields_of(kind)
    for name, convert, may_miss in _FIELDS[kind]:
        if name in found:
            continue
        if may_miss and not message.HasField(name):
            found[name] = None
        else:
            value = getattr(message, name)
            found[name] = value if convert is None else convert(value)
    return kind(**found)


def _fields_of(kind: type[Any]) -> list[tuple[str, Convert | None, bool]]:
    hints = get_type_hints(kind)
    return [
        (field.name, *_converter(hints[field.name]))
        for field in dataclasses.fields(kind)
        if field.init
    ]


def _converter(hint: Any) -> tuple[Convert | None, bool]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Union, types.UnionType}:
        (inner,) = (argument for argument in arguments if argument is not type(None))
        return _converter(inner)[0], True
    if origin is tuple:
        convert, _ = _converter(arguments[0])
        return (lambda many: tuple(map(convert, many))) if convert else tuple, False
    if origin is Mapping:
        return dict, False
    return _class_converter(hint), False


def _class_converter(kind: type[Any]) -> Convert | None:
    if kind is datetime:
        return from_timestamp
    if kind is timedelta:
        return from_duration
    if issubclass(kind, IntEnum):
        return lambda number: known(kind, number)
    if hasattr(kind, "from_message"):
        convert: Convert = kind.from_message
        return convert
    if dataclasses.is_dataclass(kind):
        return lambda message: read(kind, message)
    return None
