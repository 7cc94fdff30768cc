"""Typed wrappers from the handlers that workers announce.

`shapes.py` reads JSON Schemas into a few shapes (records, lists, unions …) that every language has;
one file per language writes them. Schemas and names come from workers, so whatever they hold ends
up in the text as a quoted literal or a plain identifier, and never as code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from jobline._server_values import HandlerSummary
from jobline.cli.generation import go, json_schema, python, typescript
from jobline.cli.generation.shapes import Program, program_of

WRITERS: dict[str, Callable[[Program], str]] = {
    "python": python.write,
    "go": go.write,
    "ts": typescript.write,
    "json-schema": json_schema.write,
}


def generate(language: str, handlers: Iterable[HandlerSummary]) -> str:
    """Returns the source text of typed wrappers, in a language of `WRITERS`."""
    return WRITERS[language](program_of(handlers))
