"""Writes TypeScript: an interface per record, and a map of handlers with their types."""

from __future__ import annotations

import json

from jobline.cli.generation.names import in_one_line, lower_camel
from jobline.cli.generation.shapes import (
    Field,
    ListOf,
    Literals,
    MapOf,
    OneOf,
    Program,
    Record,
    Ref,
    Scalar,
    Shape,
    TupleOf,
    Work,
)

_SCALARS = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
    "any": "unknown",
}
_HEAD = "// Jobs of a Jobline server, made by `jobline generate --lang ts`.\n"


def write(program: Program) -> str:
    """Returns a module."""
    types = [f"  {lower_camel(work.ident)}: {_types(work)};" for work in program.works]
    places = [f"  {lower_camel(work.ident)}: {_place(work)}," for work in program.works]
    parts = [
        *(["", "/** What each handler takes and gives. */", "export interface Handlers {"]),
        *types,
        "}",
        "",
        "/** Where each handler is. */",
        "export const handlers = {",
        *places,
        "} as const;",
        "",
    ]
    return "\n".join([_HEAD, *map(_record, program.records), *parts])


def _type_of(shape: Shape) -> str:
    match shape:
        case Scalar(kind):
            return _SCALARS[kind]
        case ListOf(item):
            return f"Array<{_type_of(item)}>"
        case TupleOf(items):
            return f"[{', '.join(map(_type_of, items))}]"
        case MapOf(value):
            return f"Record<string, {_type_of(value)}>"
        case OneOf(members):
            return " | ".join(map(_type_of, members))
        case Literals(values):
            return " | ".join(map(json.dumps, values))
        case Ref(name):
            return name


def _record(record: Record) -> str:
    lines = [_field(one) for one in record.fields]
    return "\n".join(["", f"export interface {record.name} {{", *lines, "}", ""])


def _field(one: Field) -> str:
    mark = "" if one.is_required else "?"
    return f"  {json.dumps(one.key)}{mark}: {_type_of(one.shape)};"


def _types(work: Work) -> str:
    return f"{{ payload: {_type_of(work.payload)}; result: {_type_of(work.result)} }}"


def _place(work: Work) -> str:
    name = "" if work.any_name else f", name: {json.dumps(work.name)}"
    note = f" /* {in_one_line(work.title())} */"
    return f"{{ queue: {json.dumps(work.queue)}{name} }}{note}"
