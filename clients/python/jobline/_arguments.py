"""Arguments of the wrong type or out of bounds: refused by name, with what to write instead.

Settings are checked once, where a client or a worker is made. Fields of a message are checked after
protobuf has refused them: a correct call pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from math import inf
from operator import index
from types import MappingProxyType
from typing import Any, NoReturn, ParamSpec, TypeVar, overload

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from jobline._enums import named
from jobline._times import Moment, Seconds, seconds_of, to_duration, to_timestamp
from jobline.errors import ErrorFacts, InvalidArgument

P = ParamSpec("P")
M = TypeVar("M", bound=Message)
T = TypeVar("T")
E = TypeVar("E", bound=IntEnum)

WHOLE_NUMBER = "a whole number"
TEXT = "text"

TIMEOUT_SECONDS_MAX = 31_536_000  # a year


def refuse(field: str, why: str) -> NoReturn:
    """Raises InvalidArgument for a field, as a server would."""
    raise InvalidArgument(f"{field}: {why}", ErrorFacts(fields={field: why}))


def span_given(field: str, span: Seconds, *, minimum: float = 0.0, maximum: float = inf) -> float:
    """Returns a setting that is a span of time, in seconds. Raises InvalidArgument."""
    try:
        seconds = seconds_of(span)
    except InvalidArgument as error:
        refuse(field, error.message)
    if not minimum <= seconds <= maximum:  # true for NaN too
        bounds = (
            f"{minimum:g} s or more" if maximum == inf else f"{minimum:g} s to {maximum:,.0f} s"
        )
        refuse(field, f"must be {bounds}, not {span!r}")
    return seconds


@overload
def duration_given(field: str, span: Seconds) -> Duration: ...
@overload
def duration_given(field: str, span: Seconds | None) -> Duration | None: ...
def duration_given(field: str, span: Seconds | None) -> Duration | None:
    """Returns a span of time as a message, None without one. Raises InvalidArgument."""
    try:
        return None if span is None else to_duration(span)
    except InvalidArgument as error:
        refuse(field, error.message)


@overload
def moment_given(field: str, moment: Moment) -> Timestamp: ...
@overload
def moment_given(field: str, moment: Moment | None) -> Timestamp | None: ...
def moment_given(field: str, moment: Moment | None) -> Timestamp | None:
    """Returns a moment as a message, None without one. Raises InvalidArgument."""
    try:
        return None if moment is None else to_timestamp(moment)
    except InvalidArgument as error:
        refuse(field, error.message)


def member_given(field: str, kind: type[E], value: E | int | str | None) -> Any:
    """Returns the member of an enum that a value is or names, 0 without one. Raises
    InvalidArgument.
    """
    try:
        return 0 if value is None else named(kind, value)
    except InvalidArgument as error:
        refuse(field, error.message)


def timeout_given(timeout: Seconds) -> float:
    """Returns how long a call may take, in seconds: gRPC ends a call at once that may take none, or
    that may take for ever.
    """
    return span_given("timeout", timeout, minimum=0.001, maximum=TIMEOUT_SECONDS_MAX)


def number_given(field: str, number: int, *, minimum: int, maximum: float = inf) -> int:
    """Returns a setting that is a whole number. Raises InvalidArgument."""
    if isinstance(number, bool):
        refuse(field, f"must be {WHOLE_NUMBER}, {_not(number, WHOLE_NUMBER)}")
    try:
        whole = index(number)
    except TypeError:
        refuse(field, f"must be {WHOLE_NUMBER}, {_not(number, WHOLE_NUMBER)}")
    if not minimum <= whole <= maximum:
        bounds = f"{minimum:,} or more" if maximum == inf else f"{minimum:,} to {maximum:,}"
        refuse(field, f"must be {bounds}, not {whole:,}")
    return whole


def no_bool(field: str, number: T) -> T:
    """Returns a number of a message, which holds True as 1. Raises InvalidArgument for a bool."""
    if isinstance(number, bool):
        refuse(field, f"must be a number, {_not(number, WHOLE_NUMBER)}")
    return number


def text_given(field: str, text: str) -> str:
    """Returns what must be text. Raises InvalidArgument."""
    if not isinstance(text, str):
        refuse(field, f"must be {TEXT}, {_not(text, TEXT)}")
    return text


def value_given(field: str, value: T, kind: type[T]) -> T:
    """Returns what must be one of the client's own values. Raises InvalidArgument."""
    if not isinstance(value, kind):
        refuse(field, f"must be a {kind.__name__}, not {value!r}")
    return value


def message_given(field: str, value: Any, kind: type[Any]) -> Any:
    """Returns one of the client's own values as a message, None without one. Raises
    InvalidArgument.
    """
    return None if value is None else value_given(field, value, kind).to_message()


def list_given(field: str, entries: Iterable[T]) -> tuple[T, ...]:
    """Returns a setting that is a list: a single value is none, and text would be taken letter by
    letter.
    """
    if isinstance(entries, (str, bytes)) or not isinstance(entries, Iterable):
        refuse(field, f"must be a list, not {entries!r}: write [{_written(entries)}]")
    return tuple(entries)


def ordered_given(field: str, entries: Iterable[T]) -> tuple[T, ...]:
    """Returns a setting that is a list whose order counts, which a set has not."""
    if isinstance(entries, (set, frozenset)):
        refuse(field, f"must be a list, in order, not a {type(entries).__name__}")
    return list_given(field, entries)


def tags_given(field: str, tags: Iterable[str]) -> tuple[str, ...]:
    """Returns tags sorted, each once."""
    return tuple(sorted({text_given(field, tag) for tag in list_given(field, tags)}))


def ids_given(field: str, jobs: Iterable[Any]) -> tuple[int, ...]:
    """Returns ids of jobs, each once; a job may be given by its id or by a value that has one."""
    if hasattr(jobs, "id"):  # also where it is a tuple, whose other fields are numbers too
        refuse(field, "must be a list, not one job: write [job]")
    given = [getattr(one, "id", one) for one in list_given(field, jobs)]
    return tuple(dict.fromkeys([number_given(field, one, minimum=0) for one in given]))


def headers_given(headers: Any) -> dict[str, str]:
    """Returns headers, a mapping or pairs, as a dict. Raises InvalidArgument for anything else: a
    list of mappings or of words may look like pairs to `dict`.
    """
    if hasattr(headers, "keys"):
        return dict(headers)
    pairs = list(headers) if isinstance(headers, Iterable) else [headers]
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
        refuse("options.headers", f"must be a mapping of {TEXT} to {TEXT}, not {headers!r}")
    return dict(pairs)


def middleware_given(entries: Iterable[T], kind: type[T]) -> tuple[T, ...]:
    """Returns a list of middleware of one kind: that of a worker has methods of the same names as
    that of a client, and other arguments.
    """
    layers = list_given("middleware", entries)
    for layer in layers:
        if not isinstance(layer, kind):
            meant = f": write {layer.__name__}()" if isinstance(layer, type) else ""
            refuse("middleware", f"must be a list of {kind.__name__}, not of {layer!r}{meant}")
    return layers


def message_of(kind: Callable[P, M], /, *args: P.args, **fields: P.kwargs) -> M:
    """Makes a message. Raises InvalidArgument for a field of another type, which protobuf calls a
    'bad argument type for built-in operation', and for a bool where it takes it as a number.
    """
    for name, value in fields.items():
        if isinstance(value, bool):
            _refuse_bool_as_number(kind, name, value)
    try:
        return kind(*args, **fields)
    except (TypeError, ValueError):
        refuse_field(kind, fields)
        raise


def _refuse_bool_as_number(kind: Any, name: str, value: bool) -> None:
    wanted = _wanted(kind.DESCRIPTOR.fields_by_name[name])
    if wanted in _NUMBERS:
        refuse(name, f"must be {wanted}, not {value}")


def refuse_field(kind: Any, fields: dict[str, Any], *, path: str = "") -> None:
    """Raises InvalidArgument for the first of these fields that the message does not take; the
    library that has noticed it names none.
    """
    for name, value in fields.items():
        try:
            kind(**{name: value})
        except (TypeError, ValueError):
            wanted = _wanted(kind.DESCRIPTOR.fields_by_name[name])
            refuse(f"{path}{name}", f"must be {wanted}, {_not(value, wanted)}")


_SCALARS = {
    FieldDescriptor.CPPTYPE_STRING: TEXT,
    FieldDescriptor.CPPTYPE_BOOL: "True or False",
    FieldDescriptor.CPPTYPE_DOUBLE: "a number",
    FieldDescriptor.CPPTYPE_FLOAT: "a number",
}


_NUMBERS = {WHOLE_NUMBER, "a number"}


def _wanted(field: FieldDescriptor) -> str:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        return f"a mapping of {TEXT} to {TEXT}"
    wanted = "bytes" if field.type == field.TYPE_BYTES else _SCALARS.get(field.cpp_type)
    wanted = wanted or (WHOLE_NUMBER if kind is None else kind.name)
    return f"a list of {wanted}" if field.default_value == [] else wanted


def _not(value: Any, wanted: str) -> str:
    """Returns the part of a message that names what was given instead, and what was meant if that
    is plain.
    """
    if isinstance(value, bool):
        return f"not {value}"
    if wanted == WHOLE_NUMBER and isinstance(value, int):
        return f"not {value:,}, which is out of all bounds"
    meant: object = None
    if wanted == TEXT and isinstance(value, (int, float)):
        meant = str(value)
    if wanted == WHOLE_NUMBER and isinstance(value, float) and value.is_integer():
        meant = int(value)
    if wanted == WHOLE_NUMBER and isinstance(value, str) and value.strip().isdecimal():
        meant = int(value)
    if isinstance(value, MappingProxyType):
        value = dict(value)
    return f"not {value!r}" if meant is None else f"not {value!r}: write {meant!r}"


def _written(value: Any) -> str:
    """Returns a value as it is written in a program, if `repr` is that."""
    return repr(value) if isinstance(value, (str, bytes, int, float)) else "…"
