"""Options of `jobline push` about limiters, batches, when many jobs start, and jobs that die."""

from __future__ import annotations

from typing import Annotated

import typer

from jobline.cli.options import span

Limiters = Annotated[
    list[str] | None,
    typer.Option("--limiter", metavar="NAME", help="A limiter that it passes; repeatable."),
]
Cost = Annotated[
    int | None,
    typer.Option(
        "--cost", metavar="N", help="Tokens that it takes of the rate of its queue and limiters."
    ),
]
Batch = Annotated[
    int | None,
    typer.Option("--batch", metavar="ID", help="The batch that it is a member of."),
]
Webhook = Annotated[
    str | None, typer.Option("--webhook", metavar="URL", help="A URL that is told when it ends.")
]
OnDeadHead = Annotated[
    str | None,
    typer.Option(
        "--on-dead-head", metavar="WHAT", help="What its group does if it dies: continue or hold."
    ),
]
Spread = Annotated[
    float | None,
    typer.Option("--spread", parser=span, metavar="TIME", help="One after the other, over this."),
]
