"""Messages of the protocol as plain values for `--json`.

Unlike protobuf's own JSON, ids are numbers (they have 53 bits), spans are seconds, enums are bare
names, and bytes are text where they are UTF-8. A program can rely on the keys: fields of the proto,
always there unless the proto makes them optional.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

_SCALARS = (bool, int, float, str, bytes)


def plain(message: Message) -> dict[str, Any]:
    """The fields of a message, by their names in the proto."""
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            continue
        found[field.name] = _value(field.enum_type, getattr(message, field.name))
    return found


def text_of(data: bytes) -> str | dict[str, str]:
    """Bytes as text, or as base64 where they are not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def enum_name(kind: Any, number: int) -> str | None:
    """The bare name of a value of an enum (its descriptor): READY for JOB_STATE_READY; None where
    nothing is set.
    """
    known = kind.values_by_number.get(number)
    if known is None:
        return str(number)
    prefix: str = kind.values_by_number[0].name.removesuffix("UNSPECIFIED")
    bare: str = known.name.removeprefix(prefix)
    return None if bare == "UNSPECIFIED" else bare


def _value(kind: Any, value: Any) -> Any:
    if isinstance(value, _SCALARS):
        return _scalar(kind, value)
    if isinstance(value, Message):
        return _message(value)
    if isinstance(value, Mapping):
        return {str(key): value[key] for key in sorted(value)}
    return [_scalar(kind, one) if isinstance(one, _SCALARS) else _message(one) for one in value]


def _scalar(kind: Any, value: Any) -> Any:
    if kind is not None:
        return enum_name(kind, value)
    return text_of(value) if isinstance(value, bytes) else value


def _message(value: Any) -> Any:
    if isinstance(value, Timestamp):
        return value.ToJsonString()
    if isinstance(value, Duration):
        return value.ToNanoseconds() / 1e9
    return plain(value)
