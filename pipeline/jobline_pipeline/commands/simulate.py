"""`simulate`: makes a history up, to try the pipeline without a server."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from jobline_pipeline.problems import PipelineError


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(simulate)


def simulate(
    history: Annotated[Path, typer.Argument(help="A new directory for the history.")],
    jobs: Annotated[int, typer.Option(min=100, help="How many jobs are pushed.")] = 100_000,
    hours: Annotated[int, typer.Option(min=1, max=24 * 366, help="How long it lasts.")] = 24,
    start: Annotated[
        datetime | None, typer.Option(help="Its first hour, UTC; else it ends with the last hour.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same history.")] = 7,
    processes: Annotated[int | None, typer.Option(min=1, help="At most four are used.")] = None,
) -> None:
    """Make a history up: a day of a company with twelve queues, or as much as you like."""
    from jobline_pipeline.command import steps
    from jobline_pipeline.simulate.load import HOUR_US, Load
    from jobline_pipeline.simulate.run import simulate as write

    if (history / "events").exists():
        raise PipelineError(f"{history} has events already. Name a new directory.")
    if start is None:
        start_us = (time.time_ns() // 1000 // HOUR_US - hours) * HOUR_US
    else:
        start_us = int(start.replace(tzinfo=UTC).timestamp()) * 1_000_000 // HOUR_US * HOUR_US
    load = Load(jobs=jobs, hours=hours, start_us=start_us, seed=seed)
    begun = time.monotonic()
    with steps() as shown:
        shown.step("making up a history")
        events = write(
            history,
            load,
            processes=processes,
            tell=lambda count: shown.step(f"{count:,} events of one more shard"),
        )
        took = time.monotonic() - begun
        shown.note(f"{events:,} events of {jobs:,} jobs in {took:.1f} s ({events / took:,.0f}/s)")
