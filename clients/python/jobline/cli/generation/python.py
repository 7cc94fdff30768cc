"""Writes Python: a `TypedDict` per record, and a `JobType` per handler."""

from __future__ import annotations

import builtins
import keyword

from jobline.cli.generation.names import Names, in_one_line, snake
from jobline.cli.generation.shapes import (
    ANYTHING,
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
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "any": "Any",
}
_HEAD = '''"""Jobs of a Jobline server, made by `jobline generate --lang python`."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from jobline import JobType
'''


def write(program: Program) -> str:
    """Returns a module."""
    names = Names()
    parts = [_HEAD, *map(_record, program.records)]
    parts += [_work(work, names) for work in program.works]
    return "\n".join(parts)


def hint_of(shape: Shape) -> str:
    """Returns the annotation of a shape."""
    match shape:
        case Scalar(kind):
            return _SCALARS[kind]
        case ListOf(item):
            return f"list[{hint_of(item)}]"
        case TupleOf(items):
            return f"tuple[{', '.join(map(hint_of, items))}]"
        case MapOf(value):
            return f"dict[str, {hint_of(value)}]"
        case OneOf(members):
            return " | ".join(map(hint_of, members))
        case Literals(values):
            return f"Literal[{', '.join(map(ascii, values))}]"
        case Ref(name):
            return name


def _record(record: Record) -> str:
    if all(_is_plain(one.key) for one in record.fields):
        lines = [f"    {one.key}: {_field(one)}" for one in record.fields]
        return "\n".join(["", f"class {record.name}(TypedDict):", *lines, ""])
    # Keys that are no identifiers need the other way to write it, with annotations as text.
    lines = [f"        {one.key!a}: {_field(one)!a}," for one in record.fields]
    head = f"{record.name} = TypedDict("
    return "\n".join(["", head, f"    {record.name!r},", "    {", *lines, "    },", ")", ""])


def _is_plain(key: str) -> bool:
    is_name = key.isascii() and key.isidentifier() and not keyword.iskeyword(key)
    return is_name and not key.startswith("__")


def _field(one: Field) -> str:
    hint = hint_of(one.shape)
    return hint if one.is_required else f"NotRequired[{hint}]"


def _work(work: Work, names: Names) -> str:
    comment = f"# {in_one_line(work.title())}"
    if work.differs:
        comment += f"; workers differ in: {', '.join(work.differs)}"
    payload, result = hint_of(work.payload), hint_of(work.result)
    if work.any_name:
        return "\n".join(["", f"{comment}: {payload} gives {result}", ""])
    ident = snake(work.ident)
    # The types in the annotations are builtins.
    is_taken = keyword.iskeyword(ident) or hasattr(builtins, ident)
    ident = names.free(f"{ident}_" if is_taken else ident)
    lines = [
        f"{ident}: JobType[{payload}, {result}] = JobType(",
        f"    queue={work.queue!a},",
        f"    name={work.name!a},",
        *([f"    payload={payload},"] if work.payload != ANYTHING else []),
        *([f"    result={result},"] if work.result != ANYTHING else []),
        ")",
    ]
    return "\n".join(["", comment, *lines, ""])
