"""The JSON schemas of messages and enums, as protobuf's JSON writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

Field = FieldDescriptor

INTEGER_TEXT = {"type": "string", "format": "int64", "pattern": "^-?[0-9]+$"}
SCALARS: dict[int, dict[str, Any]] = {
    Field.CPPTYPE_STRING: {"type": "string"},
    Field.CPPTYPE_BOOL: {"type": "boolean"},
    Field.CPPTYPE_DOUBLE: {"type": "number", "format": "double"},
    Field.CPPTYPE_FLOAT: {"type": "number", "format": "float"},
    Field.CPPTYPE_INT32: {"type": "integer", "format": "int32"},
    Field.CPPTYPE_UINT32: {"type": "integer", "minimum": 0, "maximum": (1 << 32) - 1},
    # As JSON has it; a request may also have numbers.
    Field.CPPTYPE_INT64: INTEGER_TEXT,
    Field.CPPTYPE_UINT64: INTEGER_TEXT,
}
BYTES = {"type": "string", "contentEncoding": "base64"}
OWN_FORMS: dict[str, dict[str, Any]] = {
    "google.protobuf.Duration": {
        "type": "string",
        "pattern": r"^-?[0-9]+(\.[0-9]{1,9})?s$",
        "examples": ["1.5s"],
    },
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.FieldMask": {"type": "string", "examples": ["lease,maxWaiting"]},
}


def reference(name: str) -> dict[str, Any]:
    """Returns a reference to a schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def message_schema(message: Descriptor, comments: Mapping[str, str]) -> dict[str, Any]:
    """Returns the schema of a message."""
    properties = {}
    for field in message.fields:
        schema = dict(_field_schema(field))
        about = comments.get(field.full_name, "")
        if field.containing_oneof is not None and len(field.containing_oneof.fields) > 1:
            others = ", ".join(
                other.json_name for other in field.containing_oneof.fields if other is not field
            )
            about = f"{about} Not together with {others}.".lstrip()
        if about:
            schema["description"] = about
        properties[field.json_name] = schema
    about = comments.get(message.full_name, "")
    return {"type": "object", "description": about, "properties": properties}


def enum_schema(enum: EnumDescriptor, comments: Mapping[str, str]) -> dict[str, Any]:
    """Returns the schema of an enum, by the names of its members."""
    # The names of members are in the scope of the enum's parent.
    scope = enum.full_name.rpartition(".")[0]
    members = [
        f"- `{value.name}`: {comments[name]}"
        for value in enum.values
        if (name := f"{scope}.{value.name}") in comments
    ]
    return {
        "type": "string",
        "description": "\n".join([comments.get(enum.full_name, ""), "", *members]).strip(),
        "enum": [value.name for value in enum.values],
    }


def inner_types(message: Descriptor) -> Iterator[Descriptor | EnumDescriptor]:
    """Yields the messages and enums that a message's schema refers to."""
    for field in message.fields:
        value = _value_of_map(field) or field
        if value.enum_type is not None:
            yield value.enum_type
        elif value.message_type is not None and value.message_type.full_name not in OWN_FORMS:
            yield value.message_type


def _field_schema(field: Field) -> dict[str, Any]:
    value = _value_of_map(field)
    if value is not None:
        return {"type": "object", "additionalProperties": _single(value)}
    if field.is_repeated:
        return {"type": "array", "items": _single(field)}
    return _single(field)


def _single(field: Field) -> dict[str, Any]:
    if field.message_type is not None:
        name = field.message_type.full_name
        return OWN_FORMS.get(name) or reference(name)
    if field.enum_type is not None:
        return reference(field.enum_type.full_name)
    return BYTES if field.type == Field.TYPE_BYTES else SCALARS[field.cpp_type]


def _value_of_map(field: Field) -> Field | None:
    """Returns the field of a map's values; None for a field that is no map."""
    inner = field.message_type
    if inner is None or not inner.GetOptions().map_entry:
        return None
    return inner.fields_by_name["value"]
