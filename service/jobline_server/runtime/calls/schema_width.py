"""How wide a schema is: how many steps a check of it may take for one value of a payload.

Schemas come from workers, and nothing stops a check once it has begun. Some small ones take hours:
definitions that refer twice to the next one, schemas that ask themselves twice about the same part
of a value. So the work is bounded before: by the width of a schema times the size of the payload.

The width counts the subschemas that may be asked about the same value, each as often as it is
referred to. Those of different properties are never asked about the same one; all others are taken
to be. A schema that refers to itself is counted once if no part of a value is reached in two ways.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple
from urllib.parse import unquote

# Subschemas and definitions that are looked at: some 30 ms.
SUBSCHEMAS_MAX = 2_000
DEFINITIONS_MAX = 300
# Patterns in one schema, each up to 0.2 ms to compile.
PATTERNS_MAX = 100
# References that lead back to where they are, from one definition.
RETURNS_MAX = 50
# Steps that a pattern takes for each byte, in the worst case; and a comparison with a value of many
# parts, for each of them.
PATTERN_WIDTH = 30
COMPARISON_WIDTH = 20

_UNEVALUATED = ("unevaluatedItems", "unevaluatedProperties")
_UNKNOWN = "it is not known what a reference leads to"
_TOO_LARGE = "the schema has too many parts"
_UNBOUNDED = "the schema may be asked about one part of a value in many ways"
# What a reference means depends on more than its text if one of these is there.
_DYNAMIC = ("$dynamicRef", "$recursiveRef")
_OF_BASE = ("$id", "id")

_Step = tuple[str, str | int | None]
"""From a value to one of its parts: its kind, and which one; None for any of the kind."""
_Path = tuple[_Step, ...]
_ITEM, _PROPERTY = "item", "property"
# Keywords whose value is a subschema or a list of them, and those that have some by name.
_PATHS: dict[str, _Path] = {
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "not", "if", "then", "else"), ()),
    **dict.fromkeys(("items", "additionalItems", "contains", _UNEVALUATED[0]), ((_ITEM, None),)),
    **dict.fromkeys(
        ("additionalProperties", "propertyNames", _UNEVALUATED[1]), ((_PROPERTY, None),)
    ),
}
_NAMED_PATHS: dict[str, _Path] = {
    "dependentSchemas": (),
    "dependencies": (),
    "patternProperties": ((_PROPERTY, None),),
}
_BY_NAME = (*_NAMED_PATHS, "dependentRequired")


class Extent(NamedTuple):
    """The width of a schema, and how many patterns it has."""

    width: int
    patterns: int


def extent_of(schema: Any) -> Extent:
    """Returns the extent of a schema. Raises ValueError if it is not bounded, or not known."""
    walk = _Walk(schema)
    return Extent(walk.width(), walk.patterns)


class _Walk:
    """The definitions of one schema, and what is known of them."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._targets: dict[str, Any] = {"#": schema}
        self._widths: dict[str, int] = {}
        # References of definitions that lead back to themselves.
        self._recursive: set[str] = set()
        self._seen = 0
        self.patterns = 0

    def width(self) -> int:
        references = self._references()
        left = self._recursive = set(references)
        while closed := [name for name in left if not references[name] & left]:
            left.difference_update(closed)
            for name in closed:
                self._widths[name] = self._width(self._targets[name])
        above: list[str] = []
        while tops := left.difference(*(references[name] for name in left)):
            left -= tops
            above += tops
        for name in left:
            self._check_returns(self._targets[name])
        total = sum([self._width(self._targets[name]) for name in left])
        self._widths.update(dict.fromkeys(left, total))
        self._recursive = set()
        for name in reversed(above):
            self._widths[name] = self._width(self._targets[name])
        return self._widths["#"]

    def _references(self) -> dict[str, set[str]]:
        """Returns the references of each definition that the schema comes to, by its pointer."""
        found: dict[str, set[str]] = {}
        open_targets = ["#"]
        while open_targets:
            name = open_targets.pop()
            found[name] = set()
            for one in self._all_of(self._targets[name], is_top=name == "#"):
                if "$ref" not in one:
                    continue
                pointer = str(one["$ref"])
                if pointer not in self._targets:
                    self._targets[pointer] = self._resolved(pointer)
                    open_targets.append(pointer)
                found[name].add(pointer)
            if len(found) > DEFINITIONS_MAX:
                raise ValueError(_TOO_LARGE)
        return found

    def _all_of(self, schema: Any, *, is_top: bool) -> Iterator[dict[str, Any]]:
        if isinstance(schema, dict):
            self._seen += 1
            self.patterns += ("pattern" in schema) + len(_dict(schema.get("patternProperties")))
            if self._seen > SUBSCHEMAS_MAX or self.patterns > PATTERNS_MAX:
                raise ValueError(_TOO_LARGE)
            if any(key in schema for key in _DYNAMIC):
                raise ValueError(_UNKNOWN)
            if not is_top and any(isinstance(schema.get(key), str) for key in _OF_BASE):
                raise ValueError(_UNKNOWN)
            yield schema
            for _, part in _parts(schema):
                yield from self._all_of(part, is_top=False)

    def _resolved(self, pointer: str) -> Any:
        if not pointer.startswith("#/"):
            raise ValueError(_UNKNOWN)
        found = self._schema
        for token in unquote(pointer)[2:].split("/"):
            key = token.replace("~1", "/").replace("~0", "~")
            try:
                found = found[int(key)] if isinstance(found, list) else found[key]
            except (LookupError, TypeError):
                raise ValueError(_UNKNOWN) from None
        return found

    def _width(self, schema: Any) -> int:
        if not isinstance(schema, dict):
            return 1
        width = _own_width(schema)
        if "$ref" in schema and schema["$ref"] not in self._recursive:
            width += self._widths[schema["$ref"]]
        by_property = [0]
        for path, part in _parts(schema):
            if path and path[0][1] is not None and path[0][0] == _PROPERTY:
                by_property.append(self._width(part))
            else:
                width += self._width(part)
        width += max(by_property)
        # Those are asked again, for what they have looked at.
        return 2 * width if any(key in schema for key in _UNEVALUATED) else width

    def _check_returns(self, schema: Any) -> None:
        """Refuses a definition that comes back to itself in two ways for one part of a value."""
        returns: list[_Path] = []
        for path in self._returns(schema, ()):
            returns.append(path)
            if not path or len(returns) > RETURNS_MAX:
                raise ValueError(_UNBOUNDED)
        for one, other in combinations(returns, 2):
            if all(_may_be_same(*steps) for steps in zip(one, other, strict=False)):
                raise ValueError(_UNBOUNDED)

    def _returns(self, schema: Any, path: _Path) -> Iterator[_Path]:
        """Yields the ways from a value to those parts for which it is all asked again."""
        if isinstance(schema, dict):
            if schema.get("$ref") in self._recursive:
                yield path
            for step, part in _parts(schema):
                yield from self._returns(part, path + step)


def _parts(schema: dict[str, Any]) -> Iterator[tuple[_Path, Any]]:
    """Yields the subschemas of a schema, and which part of a value each is asked about."""
    for key in schema.keys() & _PATHS.keys():
        for part in _list(schema[key]) or [schema[key]]:
            yield _PATHS[key], part
    for key in schema.keys() & _NAMED_PATHS.keys():
        for part in _dict(schema[key]).values():
            yield _NAMED_PATHS[key], part
    for name, part in _dict(schema.get("properties")).items():
        yield ((_PROPERTY, name),), part
    for index, part in enumerate(_list(schema.get("prefixItems"))):
        yield ((_ITEM, index),), part


def _own_width(schema: dict[str, Any]) -> int:
    width = 1 + PATTERN_WIDTH * ("pattern" in schema)
    width += PATTERN_WIDTH * len(_dict(schema.get("patternProperties")))
    width += sum(len(_dict(schema.get(key))) for key in _BY_NAME)
    values = _list(schema.get("enum"))
    if any(isinstance(value, (dict, list)) for value in values):
        width += COMPARISON_WIDTH * len(values)
    elif len({type(value) for value in values}) > 1:
        width += len(values)
    return width


def _may_be_same(one: _Step, other: _Step) -> bool:
    return one[0] == other[0] and (one[1] == other[1] or one[1] is None or other[1] is None)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
