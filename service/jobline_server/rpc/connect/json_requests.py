"""Reads requests in protobuf's JSON, strictly.

`google.protobuf.json_format` would do most of it, but takes text that is not base64 for bytes as
far as it goes (an empty payload of `"!!!!"`), and names a wrong field only somewhere in its
messages. Here a refusal has the path of its field in the protocol's names, as every refusal of a
request has it, and lists are counted before they are read, by the same table.

The forms are those of https://protobuf.dev/programming-guides/json: names in lowerCamelCase or as
in the protocol, 64-bit numbers as text or as numbers, enums by name or number, bytes in base64 of
either alphabet, null for a field that is not set. Unknown fields are refused.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, NoReturn

import grpc
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from jobline_server.engine.commands import Refused
from jobline_server.rpc.connect.json_scalars import converter, kind_of
from jobline_server.rpc.connect.json_values import check_values
from jobline_server.rpc.errors import StatusError, make_status
from jobline_server.rpc.validate import fields
from jobline_server.rpc.validate.list_limits import LIST_LIMITS

Field = FieldDescriptor
# Messages with a form of their own, and what the form is.
OWN_FORMS = {
    "google.protobuf.Duration": 'a number of seconds such as "1.5s"',
    "google.protobuf.Timestamp": 'a time such as "2026-01-31T12:00:00Z"',
    "google.protobuf.FieldMask": 'names with commas such as "lease,maxWaiting"',
}
NAME_CHARACTERS_MAX = 100


def read_json(raw: bytes, message: Message) -> Message:
    """Fills an empty message from the JSON of a request. Raises `Refused`, or `StatusError` where
    it is no JSON.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        malformed(f"the body is not UTF-8, at byte {error.start + 1}")
    check_values(text, _names_of(message.DESCRIPTOR))
    try:
        value = json.loads(text, object_pairs_hook=_members, parse_constant=_no_number)
        if not isinstance(value, dict):
            malformed(f"the body must be a JSON object, not {kind_of(value)}")
        _fill(message, value, "")
    except json.JSONDecodeError as error:
        malformed(f"no JSON: {error.msg}, at line {error.lineno} column {error.colno}")
    except RecursionError:
        malformed("no JSON of this method: it is nested too deep")
    except ValueError:  # a number of thousands of digits
        malformed("no JSON of this method: a number is too long")
    return message


def malformed(message: str) -> NoReturn:
    """Refuses a body that is no message."""
    raise StatusError(make_status(grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED_MESSAGE", message))


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        malformed(f"no JSON: two members of an object have the name {_shown(twice)}")
    return members


def _no_number(name: str) -> NoReturn:
    malformed(f"no JSON: {name} is not a number")


def _fill(message: Message, members: dict[str, Any], place: str) -> None:
    known = _fields_by_name(message.DESCRIPTOR)
    seen: set[str] = set()
    for name, value in members.items():
        field = known.get(name)
        if field is None:
            raise fields.invalid(_join(place, _shown(name)), "there is no such field")
        if value is None:
            continue
        inner = _join(place, field.name)
        for once in (
            field.name,
            field.containing_oneof and f"one of {field.containing_oneof.name}",
        ):
            if once in seen:
                raise fields.invalid(inner, "is set twice, or with another field in its place")
            if once:
                seen.add(once)
        _set(message, field, value, inner)


def _names_of(descriptor: Any) -> dict[str, str]:
    return {name: field.name for name, field in _fields_by_name(descriptor).items()}


@cache
def _fields_by_name(descriptor: Descriptor) -> dict[str, Field]:
    found = {field.name: field for field in descriptor.fields}
    return found | {field.json_name: field for field in descriptor.fields}


def _set(message: Any, field: Field, value: Any, place: str) -> None:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        _fill_map(getattr(message, field.name), field, value, place)
    elif field.is_repeated:
        _fill_list(getattr(message, field.name), field, value, place)
    elif inner is not None:
        single = getattr(message, field.name)
        single.SetInParent()
        _fill_message(single, value, place)
    else:
        setattr(message, field.name, converter(field)(value, place))


def _fill_list(values: Any, field: Field, given: Any, place: str) -> None:
    if not isinstance(given, list):
        raise fields.invalid(place, f"must be a list, not {kind_of(given)}")
    _check_count(field, given, place)
    if field.message_type is not None:
        for index, item in enumerate(given):
            _fill_message(values.add(), item, f"{place}[{index}]")
        return
    convert = converter(field)
    try:
        values.extend([convert(item, "") for item in given])
    except Refused:
        for index, item in enumerate(given):  # finds the wrong one
            convert(item, f"{place}[{index}]")
        raise


def _fill_map(values: Any, field: Any, given: Any, place: str) -> None:
    if not isinstance(given, dict):
        raise fields.invalid(place, f"must be an object, not {kind_of(given)}")
    _check_count(field, given, place)
    entry = field.message_type.fields_by_name
    key_of = converter(entry["key"])
    for name, item in given.items():
        inner = f"{place}[{_shown(name)}]"
        if entry["value"].message_type is not None:
            _fill_message(values[key_of(name, inner)], item, inner)
        else:
            values[key_of(name, inner)] = converter(entry["value"])(item, inner)


def _check_count(field: Field, given: list[Any] | dict[str, Any], place: str) -> None:
    limit = LIST_LIMITS.get(field.full_name)
    if limit:
        fields.at_most(given, place, limit)


def _fill_message(message: Any, value: Any, place: str) -> None:
    form = OWN_FORMS.get(message.DESCRIPTOR.full_name)
    if form is None:
        if not isinstance(value, dict):
            raise fields.invalid(place, f"must be an object, not {kind_of(value)}")
        _fill(message, value, place)
        return
    if not isinstance(value, str):
        raise fields.invalid(place, f"must be {form}")
    try:
        message.FromJsonString(value)
    except (ValueError, OverflowError):
        raise fields.invalid(place, f"must be {form}") from None


def _shown(name: str) -> str:
    """Returns a name of the caller as it may stand in a message."""
    return name[:NAME_CHARACTERS_MAX].encode(errors="replace").decode()


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name
