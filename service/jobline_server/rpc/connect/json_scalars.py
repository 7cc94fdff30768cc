"""Values of single fields from their JSON, strictly. Each function takes a value and its place,
which a refusal names.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from jobline_server.rpc.validate import fields

Field = FieldDescriptor
Convert = Callable[[Any, str], Any]
INTEGERS = {
    Field.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    Field.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    Field.CPPTYPE_UINT32: (0, (1 << 32) - 1),
    Field.CPPTYPE_UINT64: (0, (1 << 64) - 1),
}
INTEGER = re.compile("-?[0-9]{1,20}")
NUMBER = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,4})?")
NOT_FINITE = {name: float(name) for name in ("NaN", "Infinity", "-Infinity")}


@cache
def converter(field: Field) -> Convert:
    """Returns the function that makes a value of a field of its JSON."""
    kind = field.cpp_type
    if kind in INTEGERS:
        return _integers(*INTEGERS[kind])
    if kind == Field.CPPTYPE_ENUM:
        return _enums(field)
    if field.type == Field.TYPE_BYTES:
        return _bytes
    converters: dict[int, Convert] = {
        Field.CPPTYPE_STRING: _text,
        Field.CPPTYPE_BOOL: _boolean,
        Field.CPPTYPE_DOUBLE: _number,
        Field.CPPTYPE_FLOAT: _number,
    }
    return converters[kind]


def _integers(low: int, high: int) -> Convert:
    def integer(value: Any, place: str) -> int:
        number = value
        if isinstance(value, str):
            number = int(value) if INTEGER.fullmatch(value) else _number_of(value)
        if isinstance(number, float) and number.is_integer():
            number = int(number)
        if type(number) is not int:
            raise fields.invalid(place, f"must be a whole number, not {kind_of(value)}")
        if not low <= number <= high:
            raise fields.invalid(place, f"must be {low} to {high}")
        return number

    return integer


def _enums(field: Any) -> Convert:
    numbers = {name: value.number for name, value in field.enum_type.values_by_name.items()}
    integer = _integers(*INTEGERS[Field.CPPTYPE_INT32])

    def member(value: Any, place: str) -> int:
        if not isinstance(value, str):
            return int(integer(value, place))
        if value not in numbers:
            raise fields.invalid(place, f"must be one of {', '.join(numbers)}")
        return int(numbers[value])

    return member


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise fields.invalid(place, f"must be a text, not {kind_of(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise fields.invalid(place, "must not hold half a surrogate pair") from None
    return value


def _bytes(value: Any, place: str) -> bytes:
    if not isinstance(value, str):
        raise fields.invalid(place, f"must be bytes in base64, not {kind_of(value)}")
    standard = value.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return binascii.a2b_base64(standard + "=" * (-len(standard) % 4), strict_mode=True)
    except ValueError:
        raise fields.invalid(place, "must be bytes in base64") from None


def _boolean(value: Any, place: str) -> bool:
    if not isinstance(value, bool):
        raise fields.invalid(place, f"must be true or false, not {kind_of(value)}")
    return value


def _number(value: Any, place: str) -> float:
    number = _number_of(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise fields.invalid(place, f"must be a number, not {kind_of(value)}")
    try:
        return float(number)
    except OverflowError:
        raise fields.invalid(place, "must be a number of 64 bits") from None


def _number_of(text: str) -> float | None:
    if text in NOT_FINITE:
        return NOT_FINITE[text]
    return float(text) if NUMBER.fullmatch(text) else None


def kind_of(value: Any) -> str:
    """Returns what a value of JSON is, in words."""
    names = {
        dict: "an object",
        list: "a list",
        str: "a text",
        bool: "true or false",
        int: "a number",
    }
    return names.get(type(value), "null" if value is None else "a number with a fraction")
