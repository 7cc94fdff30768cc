"""Writes one JSON Schema document with the schemas of all handlers, as they were announced."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from jobline._schemas import DIALECT
from jobline.cli.generation.shapes import Program, Work


def write(program: Program) -> str:
    """Returns a document; each schema has an `$id`, so that its references stay within it."""
    definitions: dict[str, Any] = {}
    handlers = [_handler(work, definitions) for work in program.works]
    document = {"$schema": DIALECT, "$defs": definitions, "handlers": handlers}
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


def _handler(work: Work, definitions: dict[str, Any]) -> dict[str, Any]:
    handler: dict[str, Any] = {"queue": work.queue}
    handler |= {"any_name": True} if work.any_name else {"name": work.name}
    for part, text in zip(("payload", "result"), work.schemas, strict=True):
        schema = _parsed(text)
        if isinstance(schema, dict) and schema:
            key = f"{work.ident}{part.title()}"
            name = "" if work.any_name else f":{quote(work.name, safe='')}"
            where = f"urn:jobline:{quote(work.queue, safe='')}{name}:{part}"
            definitions[key] = {"$id": where, **schema, "$schema": DIALECT}
            handler[part] = {"$ref": f"#/$defs/{key}"}
    return handler


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
