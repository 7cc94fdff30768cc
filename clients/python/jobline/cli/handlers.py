"""`jobline introspect` and `jobline generate`: what workers can do, and typed wrappers for it."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from jobline._server_values import HandlerSummary
from jobline.cli import options as option
from jobline.cli.as_json import plain
from jobline.cli.command import QUEUES, Cli, command
from jobline.cli.exit_codes import UsageError
from jobline.cli.generation import generate as generated
from jobline.cli.generation.python import hint_of
from jobline.cli.generation.shapes import program_of
from jobline.cli.output import Column

NONE = "No worker with handlers is connected."


class Language(Enum):
    """A language of `jobline generate`."""

    PYTHON = "python"
    GO = "go"
    TS = "ts"
    JSON_SCHEMA = "json-schema"


def register(app: typer.Typer) -> None:
    """Adds `introspect` and `generate`."""
    command(app, "introspect", rich_help_panel=QUEUES)(introspect)
    command(app, "generate", rich_help_panel=QUEUES)(generate)


def introspect(cli: Cli, queue: option.OneQueue = "") -> None:
    """List the handlers of connected workers: what they take and give, and where they differ."""
    cli.out.items(cli.client.admin.handlers(queue), plain, _COLUMNS, none=NONE)


def generate(
    cli: Cli,
    queue: option.OneQueue = "",
    *,
    lang: Annotated[Language, typer.Option(help="The language of the wrappers.")] = Language.PYTHON,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file instead of the terminal.")
    ] = None,
) -> None:
    """Write typed wrappers for the handlers of connected workers."""
    handlers = list(cli.client.admin.handlers(queue))
    if not handlers:
        raise UsageError(f"{NONE} Nothing was written")
    text = generated(lang.value, handlers)
    if output is None:
        typer.echo(text, nl=False)
        return
    output.write_text(text, encoding="utf-8")
    cli.out.note(f"{output}: {len(handlers)} handlers")


def _types(handler: HandlerSummary) -> tuple[str, str]:
    """Returns what a handler takes and gives, in Python's words."""
    (work,) = program_of([handler]).works
    return hint_of(work.payload), hint_of(work.result)


_COLUMNS: list[Column[HandlerSummary]] = [
    Column("queue", lambda one: one.queue),
    Column("name", lambda one: "*" if one.any_name else one.name or "-"),
    Column("workers", lambda one: f"{one.workers:,}", right=True),
    Column("version", lambda one: " ".join(v.version or "-" for v in one.variants), from_width=80),
    Column("takes", lambda one: _types(one)[0]),
    Column("gives", lambda one: _types(one)[1], from_width=80),
    Column("workers differ in", lambda one: " ".join(one.differs), from_width=80, yields=True),
]
