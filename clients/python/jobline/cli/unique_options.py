"""Options of commands for unique keys."""

from __future__ import annotations

from typing import Annotated

import typer

from jobline.cli.options import span as _span

UniqueKey = Annotated[
    str | None,
    typer.Option(
        "--unique-key",
        "--unique",
        metavar="KEY",
        help="One unfinished job a key; see --unique-mode.",
    ),
]
UniqueMode = Annotated[
    str | None,
    typer.Option(
        "--unique-mode",
        metavar="MODE",
        help="keep, replace, extend, reject, debounce, throttle, after_active or supersede.",
    ),
]
UniqueTtl = Annotated[
    float | None,
    typer.Option("--unique-ttl", parser=_span, metavar="TIME", help="How long it holds the key."),
]
UniqueMaxWait = Annotated[
    float | None,
    typer.Option(
        "--unique-max-wait", parser=_span, metavar="TIME", help="How long debounce may delay it."
    ),
]
IsUnique = Annotated[bool, typer.Option("--unique", help="KEY is a unique key.")]
