"""Options of `jobline doctor`, as `options` has those of other commands."""

from __future__ import annotations

from typing import Annotated

import typer

from jobline.cli.options import flag, span

ReadOnly = Annotated[
    bool,
    flag("--read-only", help="Do not push a probe job; skips some checks."),
]
Idle = Annotated[
    float,
    typer.Option(
        "--idle",
        parser=span,
        metavar="TIME",
        show_default=False,
        help="Also hold a quiet stream for so long, as workers do: finds proxies that cut it.",
    ),
]
