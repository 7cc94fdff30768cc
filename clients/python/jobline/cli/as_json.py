"""What the client returns, as plain values for `--json`.

Ids are numbers (they have 53 bits), spans are seconds, moments ISO 8601, enums their names, and
bytes are text where they are UTF-8. A program can rely on the keys: the fields of the dataclass,
always there but for those that may be None.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any

from jobline._options import JobOptions
from jobline._times import to_timestamp

# What every job has, although a push may leave it out.
_OF_ALL_OPTIONS: dict[str, Any] = {"name": "", "content_type": "", "headers": {}}


def plain(value: Any) -> dict[str, Any]:
    """The fields of a dataclass, by their names."""
    found = {
        field.name: _value(entry)
        for field in fields(value)
        if not field.name.startswith("_") and (entry := getattr(value, field.name)) is not None
    }
    return _OF_ALL_OPTIONS | found if isinstance(value, JobOptions) else found


def text_of(data: bytes) -> str | dict[str, str]:
    """Bytes as text, or as base64 where they are not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _value(value: Any) -> Any:
    if isinstance(value, IntEnum):
        return value.name if value else None
    if isinstance(value, bytes):
        return text_of(value)
    if isinstance(value, datetime):
        return to_timestamp(value).ToJsonString()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return {str(key): value[key] for key in sorted(value)}
    if isinstance(value, tuple):
        return [_value(one) for one in value]
    return plain(value) if hasattr(value, "__dataclass_fields__") else value
