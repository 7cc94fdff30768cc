"""The width of a schema bounds how long a check takes; what has no bound is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobline_server.runtime.calls.schema_width import (
    DEFINITIONS_MAX,
    PATTERNS_MAX,
    SUBSCHEMAS_MAX,
    extent_of,
)


def refers(name: object) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def defined(first: dict[str, Any], **definitions: Any) -> dict[str, Any]:
    return first | {"$defs": definitions}


@pytest.mark.parametrize(
    ("schema", "width"),
    [
        (True, 1),
        ({}, 1),
        ({"properties": {"a": {}, "b": {"anyOf": [{}, {}]}}}, 4),
        ({"items": {"oneOf": [{}, {}, {}]}}, 5),
        ({"prefixItems": [{}, {}], "items": False}, 4),
        ({"pattern": "a"}, 31),
        ({"patternProperties": {"a": {}}}, 33),
        ({"enum": ["a", "b"]}, 1),
        ({"enum": ["a", 1, None]}, 4),
        ({"enum": ["a", [1]]}, 41),
        ({"dependentRequired": {"a": ["b"], "c": []}}, 3),
        ({"if": {}, "then": {}, "else": {}, "not": {}}, 5),
        ({"allOf": [{}], "unevaluatedProperties": False}, 6),
        ({"$defs": {"never": {"pattern": "a"}}}, 1),
        (defined({"anyOf": [refers("a"), refers("a")]}, a={"items": refers("b")}, b={}), 9),
        ({"items": {"$ref": "#/a~1b/0/c%25"}, "a/b": [{"c%": {"not": {}}}]}, 4),
    ],
)
def test_subschemas_that_may_be_asked_about_one_value_are_counted(schema: Any, width: int) -> None:
    """Of different properties, those of the widest."""
    assert extent_of(schema).width == width


TREE = {
    "properties": {
        "left": refers("tree"),
        "right": {"anyOf": [refers("tree"), {"type": "null"}]},
        "more": {"items": refers("tree")},
    }
}
ANYTHING = {
    "anyOf": [
        {"type": "string"},
        {"type": "array", "items": refers("anything")},
        {"type": "object", "additionalProperties": refers("anything")},
    ]
}


@pytest.mark.parametrize(
    ("schema", "width"),
    [
        ({"properties": {"next": {"$ref": "#"}}}, 2),
        (defined(refers("tree"), tree=TREE), 5),
        (defined({"anyOf": [refers("tree"), refers("tree")]}, tree=TREE), 11),
        (defined(refers("anything"), anything=ANYTHING), 7),
        (
            defined(
                refers("a"),
                a={"properties": {"b": refers("b")}},
                b={"prefixItems": [refers("a"), {}]},
            ),
            6,
        ),
    ],
)
def test_what_comes_back_to_itself_in_one_way_has_a_width(schema: Any, width: int) -> None:
    assert extent_of(schema).width == width


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"properties": {"a": {"$ref": "#"}}, "additionalProperties": {"$ref": "#"}},
        {"allOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]},
        {"items": {"$ref": "#"}, "contains": {"$ref": "#"}},
        {"properties": {"a": {"$ref": "#", "properties": {"b": {"$ref": "#"}}}}},
        {"properties": {str(number): {"$ref": "#"} for number in range(60)}},
        {"$ref": 3},
        {"$ref": ["#"]},
        {"$ref": "#anchor"},
        {"$ref": "#/nowhere"},
        {"$ref": "https://json-schema.org/draft/2020-12/schema"},
        {"items": {"$dynamicRef": "#"}},
        {"items": {"$id": "elsewhere"}},
        {"allOf": [{}] * SUBSCHEMAS_MAX},
        defined(
            refers(0), **{str(number): refers(number + 1) for number in range(DEFINITIONS_MAX)}
        ),
    ],
)
def test_what_has_no_bound_is_refused(schema: Any) -> None:
    """Some of them would be harmless: nobody needs them."""
    with pytest.raises(ValueError, match=r"schema|reference"):
        extent_of(schema)


def test_width_is_what_references_make_of_it() -> None:
    """Each definition asks the next one twice: a check takes forty years."""
    definitions = {str(n): {"allOf": [refers(n + 1)] * 2} for n in range(50)} | {"50": {}}
    assert extent_of(defined(refers(0), **definitions)).width > 1 << 50


def test_a_property_may_have_any_name() -> None:
    schema = {"properties": {"$id": {}, "id": {}, "$ref": {}, "items": {}}, "$id": "https://a.b/c"}
    assert extent_of(json.loads(json.dumps(schema))).width == 2


def test_patterns_are_counted_and_bounded() -> None:
    """A thousand of them take a quarter of a second to compile, and forty megabytes."""
    named = {str(number): {"pattern": f".{{1,30}}{number}"} for number in range(PATTERNS_MAX - 1)}
    schema = {"properties": named, "patternProperties": {"^a": {}}}
    assert extent_of(schema).patterns == PATTERNS_MAX
    with pytest.raises(ValueError, match="too many parts"):
        extent_of({**schema, "not": {"pattern": "x"}})
