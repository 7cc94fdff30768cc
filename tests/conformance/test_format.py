"""The vectors have the form that vectors.schema.json and docs/clients.md describe."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import jsonschema_rs
import pytest

from tests.conformance.vectors import ABSENT, HERE, Mismatch, filled, load, match

SCHEMA = json.loads((HERE / "vectors.schema.json").read_text(encoding="utf-8"))
ALL = [*load(), *load("must_fail.yaml")]


def complaints(vectors: Any) -> list[str]:
    return [str(error) for error in jsonschema_rs.validator_for(SCHEMA).iter_errors(vectors)]


@pytest.mark.parametrize("vector", ALL, ids=lambda vector: vector["name"])
def test_a_vector_fits_the_schema(vector: dict[str, Any]) -> None:
    assert not complaints([vector])


def test_names_are_given_once() -> None:
    twice = [name for name, count in Counter(vector["name"] for vector in ALL).items() if count > 1]
    assert not twice


GOOD: dict[str, Any] = {
    "name": "a name",
    "shows": "what it shows",
    "steps": [{"call": "JobService/Push", "expect": {}}],
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"shows": ""},
        {"steps": []},
        {"steps": [{"call": "JobService/Push"}]},
        {"steps": [{"call": "Push", "expect": {}}]},
        {"steps": [{"call": "JobService/Push", "expect": {}, "error": {"code": "NOT_FOUND"}}]},
        {"steps": [{"client": "push", "with": {"queue": "q"}, "expect": {}}]},
        {"steps": [{"client": "push", "with": {"queue": "q", "payload": 1, "x": 1}, "expect": {}}]},
        {"steps": [{"pause": 60}]},
        {"steps": [{"pause": 1, "expect": {}}]},
        {"server": "large"},
        {"worker": {}},
        {"worker": {"handlers": [{"name": "n"}]}},
        {"worker": {"handlers": [{"name": "n", "do": [[{"explode": 1}]]}]}},
        {"worker": {"handlers": [{"name": "n", "do": [[{"error": "a", "panic": "b"}]]}]}},
        {"unknown": 1},
    ],
    ids=str,
)  # fmt: skip
def test_a_mistake_in_a_vector_is_found(wrong: dict[str, Any]) -> None:
    assert not complaints([GOOD])
    assert complaints([{**GOOD, **wrong}])


@pytest.mark.parametrize(
    ("wanted", "got"),
    [
        ({}, {"a": 1}),
        ({}, ABSENT),
        ({"a": None}, {}),
        ({"a": 1}, {"a": "1"}),
        ({"a": 1}, {"a": 1.0}),
        ({"a": []}, {}),
        ({"a": True}, {"a": True}),
        ({"a": "$new", "b": "$new"}, {"a": 5, "b": "5"}),
        ("x-$old", "x-7"),
        ({"as_text": "é"}, "w6k="),
        ({"as_json": {"a": [1]}}, "eyJhIjpbMV0sImIiOjJ9"),
        ({"has": [2, 1]}, [1, 2, 3]),
    ],
    ids=str,
)
def test_what_matches(wanted: Any, got: Any) -> None:
    match(wanted, got, {"old": "7"})


@pytest.mark.parametrize(
    ("wanted", "got"),
    [
        ({"a": {}}, {"a": 1}),
        ({"a": None}, {"a": 0}),
        ({"a": 1}, {}),
        ({"a": 1}, {"a": True}),
        ({"a": True}, {"a": "true"}),
        ({"a": [1]}, {"a": [1, 2]}),
        ({"a": "$new"}, {}),
        ({"a": "$new"}, {"a": ""}),
        ({"a": "$old"}, {"a": "8"}),
        ({"has": [4]}, [1, 2, 3]),
        ({"has": [1]}, ABSENT),
        ({"as_text": "a"}, ABSENT),
    ],
    ids=str,
)
def test_what_does_not_match(wanted: Any, got: Any) -> None:
    with pytest.raises(Mismatch):
        match(wanted, got, {"old": "7"})


def test_short_forms_of_requests() -> None:
    value = {"$a": {"times": 2, "of": "$a"}, "b": {"as_text": "$a"}, "c": {"as_json": [1]}}
    assert filled(value, {"a": "x"}) == {"x": ["x", "x"], "b": "eA==", "c": "WzFd"}
