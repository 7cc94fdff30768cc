"""Payloads and results between Python values and bytes.

Bytes go as they are; anything else is JSON. What is not JSON by itself has one spelling each:
dataclasses and pydantic models are objects, enums their values, moments ISO 8601, spans seconds,
ids and decimals text, bytes base64. `shapes.py` turns JSON back into declared types.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from jobline._base_errors import CodecError

JSON = "application/json"
"""Content type of everything that is not bytes."""


def encode(value: Any) -> tuple[bytes, str]:
    """Returns the bytes of a value and their content type ("" for bytes). Raises CodecError."""
    if isinstance(value, bytes):
        return value, ""
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value), ""
    return encode_json(value), JSON


def encode_json(value: Any) -> bytes:
    """Returns the JSON of a value. Raises CodecError, which names the type that has no JSON."""
    try:
        return _ENCODER.encode(value).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise CodecError(f"no JSON for this {type(value).__name__}: {error}") from error


def decode(data: bytes, content_type: str) -> Any:
    """Returns the JSON value if the content type is JSON, else the bytes themselves."""
    return decode_json(data) if content_type.partition(";")[0].strip() == JSON else data


def decode_json(data: bytes) -> Any:
    """Returns the value of some JSON. Raises CodecError."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CodecError(f"not JSON: {error}") from error


def _spell(value: Any) -> Any:
    """Returns the JSON form of a value that is not JSON by itself."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(value, "model_dump"):  # pydantic, if the user has it
        return value.model_dump(mode="json")
    for kinds, spell in _SPELLINGS:
        if isinstance(value, kinds):
            return spell(value)
    raise TypeError(f"a value of type {type(value).__name__} has no JSON")


_SPELLINGS: list[tuple[type | tuple[type, ...], Any]] = [
    (Enum, lambda value: value.value),
    ((datetime, date, time), lambda value: value.isoformat()),
    (timedelta, lambda value: value.total_seconds()),
    ((UUID, Decimal, PurePath), str),
    (AbstractSet, list),
    ((bytes, bytearray), lambda value: base64.b64encode(value).decode()),
]

# One encoder for all: json.dumps with arguments would make a new one each time.
_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_spell
)


def type_of(value: Any) -> str:
    """Returns the content type that `encode` gives a value."""
    return "" if isinstance(value, (bytes, bytearray, memoryview)) else JSON
