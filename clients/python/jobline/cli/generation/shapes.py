"""Shapes: the parts of JSON Schemas that types of any language can say.

What no type can say (patterns, ranges, formats) is left out, and what is not understood is `any`: a
wrapper may allow more than a handler takes, and never less.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jobline._server_values import HandlerSummary
from jobline.cli.generation.names import Names, camel

# Schemas that lie within each other; deeper ones are `any`.
DEPTH_MAX = 40
# Schemas that are read of one handler, each as often as it is referred to; later ones are `any`.
READS_MAX = 10_000
# What a handler's identifier may have behind it in some language.
_OF_A_HANDLER = ("", "Queue", "Name", "Payload", "Result")


@dataclass(frozen=True)
class Scalar:
    """A string, integer, number, boolean or null; or `any`: whatever JSON has."""

    kind: str


@dataclass(frozen=True)
class ListOf:
    """A list of any length."""

    item: Shape


@dataclass(frozen=True)
class TupleOf:
    """A list with a shape for each place."""

    items: tuple[Shape, ...]


@dataclass(frozen=True)
class MapOf:
    """An object with any keys."""

    value: Shape


@dataclass(frozen=True)
class OneOf:
    """One of several shapes, at least two."""

    members: tuple[Shape, ...]


@dataclass(frozen=True)
class Literals:
    """One of some strings, integers, booleans or null."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Ref:
    """A record, by its name."""

    name: str


Shape = Scalar | ListOf | TupleOf | MapOf | OneOf | Literals | Ref

ANYTHING = Scalar("any")
NULL = Scalar("null")
_KINDS = {"string", "integer", "number", "boolean", "null"}


@dataclass(frozen=True)
class Field:
    """A key of a record."""

    key: str
    shape: Shape
    is_required: bool


@dataclass
class Record:
    """An object with known keys."""

    name: str
    fields: list[Field] = field(default_factory=list)


@dataclass(frozen=True)
class Work:
    """A handler: `ident` is its name in the program. `schemas` are its announced ones, as JSON."""

    ident: str
    queue: str
    name: str
    any_name: bool
    payload: Shape
    result: Shape
    schemas: tuple[str, str]
    differs: tuple[str, ...]

    def title(self) -> str:
        """Returns what it is, in words."""
        if self.any_name:
            return f"any other work of queue {json.dumps(self.queue)}"
        named = f"{json.dumps(self.name)} of" if self.name else "work without a name of"
        return f"{named} queue {json.dumps(self.queue)}"


@dataclass
class Program:
    """All that is written: records in the order of their first use, and handlers."""

    records: list[Record] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)


def program_of(handlers: Iterable[HandlerSummary]) -> Program:
    """Returns the program of handlers. Where workers announce different schemas, it follows those
    of the most workers, which come first.
    """
    program, names = Program(), Names()
    for handler in handlers:
        variant = handler.variants[0] if handler.variants else None
        schemas = (variant.payload_schema, variant.result_schema) if variant else ("", "")
        wanted = camel(handler.queue, "any" if handler.any_name else handler.name)
        ident = names.free(wanted, _OF_A_HANDLER)
        shapes = [
            _Reader(program, names, _parsed(text)).root(ident + suffix)
            for text, suffix in zip(schemas, ("Payload", "Result"), strict=True)
        ]
        program.works.append(
            Work(
                ident=ident,
                queue=handler.queue,
                name=handler.name,
                any_name=handler.any_name,
                payload=shapes[0],
                result=shapes[1],
                schemas=schemas,
                differs=handler.differs,
            )
        )
    return program


def is_optional(shape: Shape) -> tuple[bool, Shape]:
    """Returns whether a shape may be null, and what it is otherwise."""
    if not isinstance(shape, OneOf) or NULL not in shape.members:
        return False, shape
    rest = tuple(member for member in shape.members if member != NULL)
    return True, rest[0] if len(rest) == 1 else OneOf(rest)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}


class _Reader:
    """Reads one schema; its records go to the program."""

    def __init__(self, program: Program, names: Names, schema: Any) -> None:
        self._program = program
        self._names = names
        self._schema = schema
        self._definitions = _object(
            _object(schema).get("$defs") or _object(schema).get("definitions")
        )
        self._records: dict[str, str] = {}
        self._depth = 0
        self._left = READS_MAX

    def root(self, name: str) -> Shape:
        """Returns the shape of the whole schema; a record is called `name`."""
        return self._read(self._schema, name, is_root=True)

    def _read(self, schema: Any, name: str, *, is_root: bool = False) -> Shape:
        if not isinstance(schema, Mapping) or self._depth >= DEPTH_MAX or not self._left:
            return ANYTHING
        self._left -= 1
        self._depth += 1
        try:
            return self._shape(schema, name, is_root=is_root)
        finally:
            self._depth -= 1

    def _shape(self, schema: Mapping[str, Any], name: str, *, is_root: bool) -> Shape:
        if isinstance(schema.get("$ref"), str):
            return self._referred(schema["$ref"])
        if "const" in schema or isinstance(schema.get("enum"), list):
            return _literals([schema["const"]] if "const" in schema else schema["enum"])
        for word in ("anyOf", "oneOf", "allOf"):
            members = schema.get(word)
            if isinstance(members, list) and members:
                if word == "allOf" and len(members) > 1:
                    return ANYTHING
                return _union(
                    self._read(member, f"{name}{i}") for i, member in enumerate(members, 1)
                )
        kinds = schema.get("type")
        if isinstance(kinds, list):
            return _union(self._kind(schema, kind, name, is_root=is_root) for kind in kinds)
        return self._kind(schema, kinds, name, is_root=is_root)

    def _kind(self, schema: Mapping[str, Any], kind: Any, name: str, *, is_root: bool) -> Shape:
        if kind == "object" or (kind is None and isinstance(schema.get("properties"), Mapping)):
            return self._object(schema, name, is_root=is_root)
        if kind == "array":
            return self._array(schema, name)
        return Scalar(kind) if isinstance(kind, str) and kind in _KINDS else ANYTHING

    def _array(self, schema: Mapping[str, Any], name: str) -> Shape:
        places = schema.get("prefixItems")
        if isinstance(places, list) and places and schema.get("maxItems") == len(places):
            items = (self._read(one, f"{name}{i}") for i, one in enumerate(places, 1))
            return TupleOf(tuple(items))
        return ListOf(ANYTHING if places else self._read(schema.get("items"), f"{name}Item"))

    def _object(self, schema: Mapping[str, Any], name: str, *, is_root: bool) -> Shape:
        properties = _object(schema.get("properties"))
        if not properties:
            return MapOf(self._read(schema.get("additionalProperties"), f"{name}Value"))
        if is_root:
            return Ref(self._record(schema, properties, name))
        title = schema.get("title")
        wanted = camel(title) if isinstance(title, str) and title else name
        return Ref(self._record(schema, properties, self._names.free(wanted)))

    def _record(
        self, schema: Mapping[str, Any], properties: Mapping[str, Any], name: str, key: str = ""
    ) -> str:
        record = Record(name)
        if key:
            self._records[key] = record.name
        self._program.records.append(record)
        required = schema.get("required")
        needed = set(map(str, required)) if isinstance(required, list) else set()
        for field_name, of_field in properties.items():
            shape = self._read(of_field, record.name + camel(field_name))
            record.fields.append(Field(field_name, shape, field_name in needed))
        return record.name

    def _referred(self, ref: str) -> Shape:
        key = ref.removeprefix("#/$defs/").removeprefix("#/definitions/")
        if key in self._records:
            return Ref(self._records[key])
        schema = _object(self._definitions.get(key))
        properties = _object(schema.get("properties"))
        if schema.get("type", "object") == "object" and properties:
            return Ref(self._record(schema, properties, self._names.free(camel(key)), key))
        # Not a record: an enum, say, which has no name of its own here.
        return self._read(schema, camel(key))


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _literals(values: list[Any]) -> Shape:
    if values and all(isinstance(value, str | int) or value is None for value in values):
        return Literals(tuple(values))
    return ANYTHING


def _union(members: Iterator[Shape]) -> Shape:
    found: dict[Shape, None] = {}
    for member in members:
        for one in member.members if isinstance(member, OneOf) else (member,):
            found[one] = None
    if ANYTHING in found or not found:
        return ANYTHING
    return next(iter(found)) if len(found) == 1 else OneOf(tuple(found))
