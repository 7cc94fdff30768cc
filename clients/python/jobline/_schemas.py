"""JSON Schemas of declared types: what a worker announces of the payloads that its handlers take.

They follow `_typed_json`, which reads the payloads: what it takes, the schema takes. Unknown keys
of an object are allowed, moments are text, spans are seconds. Types without a shape of their own
(`Any`, classes that nobody declared fields of) have an empty schema.
"""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)
from uuid import UUID

from jobline._parameters import Parameters

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# A schema over this size is not announced: the server takes none.
SCHEMA_BYTES_MAX = 64 << 10

_SPELLED: dict[type, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    time: {"type": "string", "format": "time"},
    timedelta: {"type": "number"},
    UUID: {"type": "string", "format": "uuid"},
    Decimal: {"type": ["string", "number"]},
    Path: {"type": "string"},
    bytes: {"type": "string", "contentEncoding": "base64"},
}
_MARKS = (Required, NotRequired)
_JSON_SCALARS = (str, int, float, bool, type(None))


def schema_text(hint: Any) -> str:
    """Returns the JSON Schema of a type as JSON; "" if there is nothing to say: for `Any`, for
    payloads that are bytes, and for a type that has no schema or too large a one.
    """
    if hint is bytes:
        return ""
    try:
        schema = schema_of(hint)
        text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    except Exception:  # noqa: BLE001  # a type that cannot be described is still a type
        return ""
    return text if schema and len(text.encode()) <= SCHEMA_BYTES_MAX else ""


def schema_of(hint: Any) -> Schema:
    """Returns the JSON Schema of a type; empty if it takes anything."""
    builder = _Builder()
    schema = builder.of(hint)
    if not builder.definitions:
        return schema
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    if name in builder.definitions and not builder.is_recursive(name):
        schema = builder.definitions.pop(name)
    if builder.definitions:
        schema = {**schema, "$defs": builder.definitions}
    return schema


class _Builder:
    """Collects the definitions of classes, so that types may refer to themselves."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}
        self._names: dict[type, str] = {}

    def is_recursive(self, name: str) -> bool:
        """Returns whether any definition refers to this one."""
        return f'"#/$defs/{name}"' in json.dumps(self.definitions)

    def of(self, hint: Any) -> Schema:
        """Returns the schema of a type hint."""
        hint = getattr(hint, "__supertype__", hint)
        if isinstance(hint, Parameters):
            hint = hint.record
        if hint is None:
            return {"type": "null"}
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated or origin in _MARKS:
            return self.of(arguments[0])
        if origin in {Union, types.UnionType}:
            return self._union(arguments)
        if origin is Literal:
            return _enum(arguments)
        if origin is not None:
            return self._container(origin, arguments)
        return self._class(hint) if isinstance(hint, type) else {}

    def _union(self, members: Sequence[Any]) -> Schema:
        schemas = [self.of(member) for member in members]
        # What takes anything makes the rest of no use.
        return {"anyOf": schemas} if all(schemas) else {}

    def _container(self, origin: Any, arguments: Sequence[Any]) -> Schema:
        if not isinstance(origin, type):
            return {}
        if issubclass(origin, Mapping):
            values = self.of(arguments[1]) if len(arguments) > 1 else {}
            return {"type": "object", **({"additionalProperties": values} if values else {})}
        if issubclass(origin, tuple) and arguments and arguments[-1] is not Ellipsis:
            parts = [self.of(argument) for argument in arguments]
            size = len(parts)
            return {"type": "array", "prefixItems": parts, "minItems": size, "maxItems": size}
        if not issubclass(origin, (Sequence, AbstractSet)):
            return {}
        items = self.of(arguments[0]) if arguments else {}
        return {"type": "array", **({"items": items} if items else {})}

    def _class(self, kind: type) -> Schema:
        if kind in _SPELLED:
            return _SPELLED[kind]
        if hasattr(kind, "model_json_schema"):
            return self._model(kind)
        if dataclasses.is_dataclass(kind) or is_typeddict(kind):
            return self._record(kind)
        if issubclass(kind, Enum):
            return _enum([member.value for member in kind])
        if kind in {list, tuple, set, frozenset, dict}:
            return self._container(kind, ())
        return {}

    def _model(self, kind: Any) -> Schema:
        """A pydantic model makes its own; its definitions become some of ours."""
        schema: Schema = dict(kind.model_json_schema(ref_template="#/$defs/{model}"))
        self.definitions.update(schema.pop("$defs", {}))
        return schema

    def _record(self, kind: type) -> Schema:
        if kind not in self._names:
            name = _free_name(kind.__name__, self.definitions)
            self._names[kind] = name
            self.definitions[name] = {}
            fields, required = _fields_of(kind)
            record: Schema = {"title": kind.__name__, "type": "object"}
            record["properties"] = {field: self.of(hint) for field, hint in fields.items()}
            if required:
                record["required"] = required
            self.definitions[name] = record
        return {"$ref": f"#/$defs/{self._names[kind]}"}


def _fields_of(kind: Any) -> tuple[dict[str, Any], list[str]]:
    """Returns the hints of a dataclass's or TypedDict's fields, and the names that are required."""
    hints = get_type_hints(kind, include_extras=True)
    if is_typeddict(kind):
        return hints, [key for key, hint in hints.items() if _is_required(kind, key, hint)]
    fields = [field for field in dataclasses.fields(kind) if field.init]
    missing = dataclasses.MISSING
    required = [
        field.name
        for field in fields
        if field.default is missing and field.default_factory is missing
    ]
    return {field.name: hints[field.name] for field in fields}, required


def _is_required(kind: Any, key: str, hint: Any) -> bool:
    """Returns whether a TypedDict needs a key. Its own `__required_keys__` do not see the marks of
    annotations that are text.
    """
    mark = get_origin(hint)
    return key in kind.__required_keys__ if mark not in _MARKS else mark is Required


def _enum(values: Sequence[Any]) -> Schema:
    if all(type(value) in _JSON_SCALARS for value in values):
        return {"enum": list(values)}
    return {}


def _free_name(name: str, taken: Mapping[str, object]) -> str:
    """Returns a name that no other class has: two modules may each have a `Mail`."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name}{number}", number + 1
    return found
