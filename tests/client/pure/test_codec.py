"""Values to bytes and back: JSON by default, bytes on request, declared types from their hints."""

from __future__ import annotations

import dataclasses
import enum
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, NamedTuple, Optional
from uuid import UUID

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline import CodecError
from jobline._codec import JSON, decode, encode, encode_json
from jobline._typed_json import decode_as, reader_of

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Size:
    width: int
    height: int = 10


@dataclasses.dataclass
class Order:
    id: UUID
    size: Size
    colour: Colour
    price: Decimal
    at: datetime
    day: date
    within: timedelta
    raw: bytes
    tags: frozenset[str]
    pair: tuple[int, str]
    more: dict[int, list[Size]]
    kind: Literal["a", "b"]
    parent: Optional[Order] = None  # noqa: UP045  # the older spelling works too
    note: str | None = None


ORDER = Order(
    UUID(int=5),
    Size(1),
    Colour.RED,
    Decimal("1.10"),
    datetime(2025, 1, 2, tzinfo=UTC),
    date(2025, 1, 2),
    timedelta(seconds=90),
    b"\x00\xff",
    frozenset({"x"}),
    (1, "one"),
    {3: [Size(1, 2)]},
    "a",
    note="n",
)


class Mail(pydantic.BaseModel):
    to: str
    retries: int = 3

    @pydantic.field_validator("to")
    @classmethod
    def _check(cls, to: str) -> str:
        if not to:
            raise ValueError("nobody to send it to")
        return to


@given(st.binary())
def test_bytes_go_as_they_are(data):
    """No encoding, no content type."""
    assert encode(data) == (data, "")
    assert encode(bytearray(data)) == (data, "")
    assert decode(data, "") == data


@given(json_values)
def test_json_values_come_back(value):
    """Anything that is JSON survives the way there and back."""
    data, content_type = encode(value)
    assert content_type == JSON
    assert decode(data, "application/json; charset=utf-8") == value


def test_a_dataclass_comes_back_as_it_was():
    """Each type that is not JSON has one spelling, and hints read it back."""
    nested = dataclasses.replace(ORDER, parent=ORDER)
    assert decode_as(Order, encode_json(nested), JSON) == nested


def test_a_pydantic_model_validates_itself():
    """Pydantic is used where a model asks for it, and its complaint is a CodecError."""
    assert decode_as(Mail, encode(Mail(to="x"))[0], JSON) == Mail(to="x")
    assert decode_as(list[Mail], b'[{"to":"x"}]', JSON) == [Mail(to="x")]
    with pytest.raises(CodecError, match="not a Mail"):
        decode_as(Mail, b"{}", JSON)


@pytest.mark.parametrize("hint", [Mail, list[Mail]])
def test_what_a_pydantic_model_refuses_is_said_in_a_line(hint):
    """Pydantic's own text has a line per field, and one with an address behind each."""
    text = b'{"to": "", "retries": "x"}'
    with pytest.raises(CodecError) as refused:
        decode_as(hint, text if hint is Mail else b"[%b]" % text, JSON)
    said = refused.value.message
    assert said.removeprefix("[0]: ").startswith("not a Mail: to: nobody to send it to; retries: ")
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("hint", "text", "where"),
    [
        (Size, b'{"height": 3}', "not a Size"),
        (Size, b'{"width": "3"}', "width: expected int, found str"),
        (Size, b"[]", "expected an object for Size"),
        (list[Size], b'[{"width": 1}, {"width": true}]', r"\[1\]: width: expected int, found bool"),
        (dict[str, int], b'{"a": null}', "a: expected int, found NoneType"),
        (dict[int, int], b'{"a": 1}', "not a int"),
        (Colour, b'"green"', "not a Colour"),
        (UUID, b"5", "not a UUID"),
        (datetime, b'"soon"', "not a datetime"),
        (tuple[int, str], b"[1]", "a list of 2"),
        (set[int], b"{}", "expected a list"),
        (Literal["a"], b'"b"', "one of 'a'"),
        (int | None, b'"x"', "expected int, found str; nor expected NoneType"),
        (str, b"\xff", "not JSON"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(hint, text, where):
    """The mistake names the field, not only the payload."""
    with pytest.raises(CodecError, match=where):
        decode_as(hint, text, JSON)


@pytest.mark.parametrize(
    ("hint", "data", "content_type", "value"),
    [
        (bytes, b"{}", JSON, b"{}"),
        (Any, b"{}", JSON, {}),
        (Any, b"{}", "", b"{}"),
        (None, b"whatever", "", None),
        (dict, b"{}", "", {}),
        (float, b"3", JSON, 3.0),
        (object, b"3", JSON, 3),
    ],
)
def test_the_declared_type_decides(hint, data, content_type, value):
    """Bytes on request, JSON for types whatever the content type says, else as the content type
    says.
    """
    assert decode_as(hint, data, content_type) == value


def test_unknown_fields_are_ignored():
    """A producer may be newer than the worker."""
    assert decode_as(Size, b'{"width": 1, "depth": 2}', JSON) == Size(1)


def test_hints_that_are_no_shape_pass_the_value_through():
    """What cannot be checked is not changed."""

    class Pair(NamedTuple):
        a: int
        b: int

    assert reader_of(Pair)([1, 2]) is not None
    assert reader_of(callable)(3) == 3


@pytest.mark.parametrize("value", [math.nan, math.inf, object(), {"a": {1j}}, {(1, 2): 3}])
def test_what_has_no_json_is_refused(value):
    """It is said at the push, not at the worker."""
    with pytest.raises(CodecError, match="no JSON"):
        encode(value)


def test_endless_values_are_refused():
    """A list that contains itself is a mistake of the caller, not of the client."""
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(CodecError):
        encode(endless)


def test_bytes_that_a_declared_type_cannot_read_are_not_said_to_claim_json():
    """Nobody said that they are JSON: the handler's annotation asks for it."""
    with pytest.raises(CodecError, match=r"^not JSON: 'utf-8' codec"):
        decode_as(dict, b"\xff", "")
