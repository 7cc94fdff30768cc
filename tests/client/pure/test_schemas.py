"""JSON Schemas of declared types say what the reader of these types takes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, NotRequired, TypedDict, TypeVar
from uuid import UUID

import pydantic
import pytest

from jobline._schemas import SCHEMA_BYTES_MAX, schema_of, schema_text


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Odd(Enum):
    ONE = (1, 2)


@dataclass
class Address:
    street: str
    number: int | None = None


@dataclass
class Mail:
    to: Address
    cc: list[Address] = field(default_factory=list)
    sent: bool = field(default=False, init=False)


@dataclass
class Tree:
    value: int
    children: list[Tree]


class Row(TypedDict):
    id: int
    note: NotRequired[str]


class Model(pydantic.BaseModel):
    name: str
    address: Mapping[str, int] = {}


@dataclass
class Mixed:
    model: Model


UserId = NewType("UserId", int)
T = TypeVar("T")


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (datetime, {"type": "string", "format": "date-time"}),
        (date, {"type": "string", "format": "date"}),
        (time, {"type": "string", "format": "time"}),
        (timedelta, {"type": "number"}),
        (UUID, {"type": "string", "format": "uuid"}),
        (Decimal, {"type": ["string", "number"]}),
        (Path, {"type": "string"}),
        (bytes, {"type": "string", "contentEncoding": "base64"}),
        (UserId, {"type": "integer"}),
        (Annotated[str, "a note"], {"type": "string"}),
        (list, {"type": "array"}),
        (dict, {"type": "object"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Sequence[Any], {"type": "array"}),
        (frozenset[str], {"type": "array", "items": {"type": "string"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Mapping[str, Any], {"type": "object"}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (int | Any, {}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Colour, {"enum": ["red", "blue"]}),
        (Odd, {}),
        (Any, {}),
        (object, {}),
        (T, {}),
        (type[int], {}),
    ],
)
def test_schema_of_a_type(hint: Any, schema: dict[str, Any]) -> None:
    assert schema_of(hint) == schema


def test_dataclass_is_an_object_with_the_fields_that_it_is_made_with() -> None:
    street = {"type": "string"}
    number = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    address = {
        "title": "Address",
        "type": "object",
        "properties": {"street": street, "number": number},
        "required": ["street"],
    }
    assert schema_of(Address) == address
    assert schema_of(Mail) == {
        "title": "Mail",
        "type": "object",
        "properties": {
            "to": {"$ref": "#/$defs/Address"},
            "cc": {"type": "array", "items": {"$ref": "#/$defs/Address"}},
        },
        "required": ["to"],
        "$defs": {"Address": address},
    }


def test_type_may_refer_to_itself() -> None:
    schema = schema_of(Tree)
    assert schema["$ref"] == "#/$defs/Tree"
    children = schema["$defs"]["Tree"]["properties"]["children"]
    assert children == {"type": "array", "items": {"$ref": "#/$defs/Tree"}}


def test_typed_dict_says_which_keys_it_needs() -> None:
    schema = schema_of(Row)
    assert (schema["required"], list(schema["properties"])) == (["id"], ["id", "note"])


def test_model_makes_its_own_also_within_another_type() -> None:
    assert schema_of(Model)["required"] == ["name"]
    assert schema_of(Mixed)["properties"]["model"]["title"] == "Model"


def test_classes_of_the_same_name_are_kept_apart() -> None:
    @dataclass
    class Other:
        subject: str

    Other.__name__ = "Mail"
    pair = schema_of(tuple[Other, Mail])
    assert {"Mail", "Mail2"} <= set(pair["$defs"])


@pytest.mark.parametrize("hint", [Any, bytes, object])
def test_type_that_says_nothing_has_no_text(hint: Any) -> None:
    assert schema_text(hint) == ""


def test_type_that_cannot_be_described_has_no_text() -> None:
    class Broken:
        @staticmethod
        def model_json_schema(**_: Any) -> dict[str, Any]:
            raise ValueError("no")

    assert schema_text(Broken) == ""


def test_schema_that_the_server_would_refuse_has_no_text() -> None:
    values = tuple(str(number) * 20 for number in range(10_000))
    assert schema_text(Literal[values]) == ""
    assert len(schema_text(Mail)) < SCHEMA_BYTES_MAX
    assert json.loads(schema_text(Mail))["title"] == "Mail"
