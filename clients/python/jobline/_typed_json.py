"""JSON values into declared types: the way back of `codec.py`, driven by type hints.

`reader_of(hint)` makes a function once a type; that function is then called for each payload.
Unknown keys of an object are ignored, so that producers may be newer than workers; what is missing
or of the wrong type is a CodecError that names the place. This is no validator: types that need
more than a shape bring pydantic.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from jobline import _codec as codec
from jobline._base_errors import CodecError
from jobline._sealed_frames import MAGIC, is_frame, refuse_sealed

Reader = Callable[[Any], Any]
"""Takes a JSON value, returns a value of its type, raises CodecError."""


class OwnReader(ABC):
    """A type that knows by itself how its payloads are read."""

    @abstractmethod
    def decode(self, data: bytes) -> Any:
        """Returns the value of a payload. Raises CodecError."""


def decode_as(hint: Any, data: bytes, content_type: str) -> Any:
    """Returns bytes as a declared type. `bytes` takes them as they are; no type (`Any`) reads JSON
    if the content type is JSON; a declared type reads JSON whatever it is. Raises SealError for a
    sealed frame that nobody has opened.
    """
    if data.startswith(MAGIC) and is_frame(data):
        refuse_sealed(data)
    if hint is bytes:
        return data
    if hint is Any:
        return codec.decode(data, content_type)
    if hint is None or hint is type(None):
        return None
    if hasattr(hint, "model_validate_json"):
        try:
            return hint.model_validate_json(data)
        except ValueError as error:  # pydantic's ValidationError is one
            raise CodecError(f"not a {hint.__name__}: {_why(error)}") from error
    if isinstance(hint, OwnReader):
        return hint.decode(data)
    return reader_of(hint)(codec.decode_json(data))


@lru_cache(maxsize=1024)
def reader_of(hint: Any) -> Reader:
    """Returns the reader of a type hint."""
    origin = get_origin(hint)
    if origin is Annotated:
        return reader_of(get_args(hint)[0])
    if origin in {Union, types.UnionType}:
        return _union_reader(get_args(hint))
    if origin is Literal:
        return _literal_reader(get_args(hint))
    if origin is not None:
        return _container_reader(origin, get_args(hint))
    if hint is Any or hint is object or isinstance(hint, TypeVar) or not isinstance(hint, type):
        return _same
    return _class_reader(hint)


def _why(error: Exception) -> str:
    """Returns what is wrong, in one line: pydantic's own text has several, addresses, and prefixes
    before the words of a validator.
    """
    if not hasattr(error, "errors"):
        return str(error)
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(
        ": ".join(
            filter(None, [".".join(map(str, one["loc"])), one["msg"].removeprefix("Value error, ")])
        )
        for one in problems
    )


def _same(value: Any) -> Any:
    return value


def _class_reader(kind: type) -> Reader:
    if hasattr(kind, "model_validate"):
        return _guarded(kind, kind.model_validate)
    if dataclasses.is_dataclass(kind):
        return _DataclassReader(kind)
    if issubclass(kind, Enum):
        return _guarded(kind, kind)
    if kind in _SPELLED:
        return _guarded(kind, _SPELLED[kind])
    if kind in {str, int, float, bool, type(None)}:
        return _scalar_reader(kind)
    if kind in {list, dict, tuple, set, frozenset}:
        return _container_reader(kind, ())
    return _same


_SPELLED: dict[type, Reader] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    time: time.fromisoformat,
    timedelta: lambda value: timedelta(seconds=value),
    UUID: UUID,
    Decimal: Decimal,
    Path: Path,
    bytes: lambda value: base64.b64decode(value, validate=True),
}


def _guarded(kind: type, make: Callable[[Any], Any]) -> Reader:
    def read(value: Any) -> Any:
        try:
            return make(value)
        except (ValueError, TypeError, AttributeError, InvalidOperation, binascii.Error) as error:
            raise CodecError(f"not a {kind.__name__}: {_why(error)}") from error

    return read


def _scalar_reader(kind: type) -> Reader:
    def read(value: Any) -> Any:
        if kind is float and type(value) is int:
            return float(value)  # JSON has one kind of number
        if type(value) is not kind:  # exact, since True is an int
            raise CodecError(f"expected {kind.__name__}, found {type(value).__name__}")
        return value

    return read


def _union_reader(members: tuple[Any, ...]) -> Reader:
    readers = [reader_of(member) for member in members]

    def read(value: Any) -> Any:
        mistakes = []
        for reader in readers:
            try:
                return reader(value)
            except CodecError as error:
                mistakes.append(error.message)
        raise CodecError("; nor ".join(mistakes))

    return read


def _literal_reader(allowed: tuple[Any, ...]) -> Reader:
    def read(value: Any) -> Any:
        if value not in allowed:
            raise CodecError(f"expected one of {', '.join(map(repr, allowed))}")
        return value

    return read


def _container_reader(origin: Any, arguments: tuple[Any, ...]) -> Reader:
    if not isinstance(origin, type):
        return _same
    if issubclass(origin, Mapping):
        return _mapping_reader(arguments)
    if issubclass(origin, tuple) and arguments and arguments[-1] is not Ellipsis:
        return _fixed_tuple_reader(arguments)
    if not issubclass(origin, (Sequence, AbstractSet)):
        return _same
    item = reader_of(arguments[0]) if arguments else _same
    make = next((kind for kind in (tuple, frozenset, set) if issubclass(origin, kind)), list)

    def read(value: Any) -> Any:
        if not isinstance(value, list):
            raise CodecError(f"expected a list, found {type(value).__name__}")
        return make(_at(f"[{index}]", item, entry) for index, entry in enumerate(value))

    return read


def _fixed_tuple_reader(arguments: tuple[Any, ...]) -> Reader:
    readers = [reader_of(argument) for argument in arguments]

    def read(value: Any) -> Any:
        if not isinstance(value, list) or len(value) != len(readers):
            raise CodecError(f"expected a list of {len(readers)}")
        pairs = zip(readers, value, strict=True)
        return tuple(_at(f"[{i}]", reader, entry) for i, (reader, entry) in enumerate(pairs))

    return read


def _mapping_reader(arguments: tuple[Any, ...]) -> Reader:
    item = reader_of(arguments[1]) if arguments else _same
    key_kind = arguments[0] if arguments else str
    # Keys are text in JSON, whatever they were.
    read_key = _guarded(key_kind, key_kind) if key_kind in {int, float} else _same

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise CodecError(f"expected an object, found {type(value).__name__}")
        return {read_key(key): _at(f".{key}", item, entry) for key, entry in value.items()}

    return read


class _DataclassReader:
    """Reads one dataclass; its hints are resolved at the first use, so that types may refer to
    themselves.
    """

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._readers: dict[str, Reader] | None = None

    def __call__(self, value: Any) -> Any:
        if not isinstance(value, dict):
            raise CodecError(
                f"expected an object for {self._kind.__name__}, found {type(value).__name__}"
            )
        if self._readers is None:
            hints = get_type_hints(self._kind, include_extras=True)
            fields = [field.name for field in dataclasses.fields(self._kind) if field.init]
            self._readers = {name: reader_of(hints[name]) for name in fields}
        found = {
            name: _at(f".{name}", reader, value[name])
            for name, reader in self._readers.items()
            if name in value
        }
        try:
            return self._kind(**found)
        except (TypeError, ValueError) as error:
            raise CodecError(f"not a {self._kind.__name__}: {error}") from error


def _at(place: str, reader: Reader, value: Any) -> Any:
    """Reads a part; an error in it names the place."""
    try:
        return reader(value)
    except CodecError as error:
        raise CodecError(f"{place.lstrip('.')}: {error.message}") from error
