"""`python -m demo FOLDER`, or `make pipeline-demo`: a history from its first job to its report."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from demo import counted
from demo.play import DemoFailedError, Played, play
from demo.screen import Screen
from jobline_pipeline.command import opened, steps
from jobline_pipeline.problems import PipelineError

if TYPE_CHECKING:
    from jobline_pipeline.store import Store

OBJECTIVES = """\
[[objective]]
name = "receipts and news start at once"
queue = "mail"
measure = "wait"
at_most = 1.0
share = 0.99

[[objective]]
name = "images are ready soon"
queue = "images"
measure = "total"
at_most = 5.0
share = 0.95

[[objective]]
name = "jobs complete"
queue = "*"
measure = "completed"
share = 0.999
"""
_LINES_OF_LOG = 15


def main(
    folder: Annotated[Path, typer.Argument(help="Made anew: data, history, tables, report.")],
    seconds: Annotated[float, typer.Option(min=5, help="How long jobs are pushed.")] = 25.0,
    memory: Annotated[str, typer.Option(help="The heap of Spark.")] = "1g",
) -> None:
    """Run a real server under a shop's load, and its exported history through the pipeline.

    Ends with 0 if every total of the tables is what the server itself counted, else with 1.
    """
    screen = Screen()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    folder = folder.resolve()
    try:
        screen.title("1. A server, workers, and a load")
        played = asyncio.run(play(folder, seconds, screen))
        _say_exported(folder, played, screen)
        screen.title("2. The pipeline: exported files → tables → report")
        is_right = _tables_and_report(folder, played, memory, screen)
    except (DemoFailedError, PipelineError) as failure:
        screen.say(f"the demo failed: {failure}", "bold red")
        for log in sorted(folder.glob("*.log")):
            screen.say(f"--- {log}", "dim")
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            screen.say("\n".join(lines[-_LINES_OF_LOG:]))
        is_right = False
    raise typer.Exit(0 if is_right else 1)


def _say_exported(folder: Path, played: Played, screen: Screen) -> None:
    files = list((folder / "history").rglob("*.parquet"))
    size = sum(file.stat().st_size for file in files)
    jobs = sum(each.pushed for each in played.totals.values())
    still_open = sum(each.open for each in played.totals.values())
    screen.say(
        f"{jobs:,} jobs in {played.seconds:.0f} s. All have ended but {still_open} that are due in "
        f"an hour. The server has stopped;\nits history is {len(files)} Parquet files "
        f"({size / 1e6:.1f} MB) in {folder / 'history'}"
    )


def _tables_and_report(folder: Path, played: Played, memory: str, screen: Screen) -> bool:
    tables = folder / "tables"
    tables.mkdir()
    (tables / "objectives.toml").write_text(OBJECTIVES, encoding="utf-8")
    with steps() as shown, opened(str(tables), memory=memory, must_exist=False) as store:
        from jobline_pipeline.report.answers import collect  # noqa: PLC0415 - after Spark's start
        from jobline_pipeline.report.page import page  # noqa: PLC0415 - as above

        _run(store, folder / "history", tables / "objectives.toml", shown.step)
        answers = collect(store, shown.step)
        shown.step("comparing with the server")
        found = counted.of_tables(store.spark)
    report = folder / "report.html"
    report.write_text(page(answers), encoding="utf-8")
    _show(answers, screen)
    screen.title("3. Is it right?")
    screen.totals(played.totals)
    wrong = counted.differences(played.totals, found)
    screen.verdict(wrong, len(played.totals) * len(fields(counted.Totals)))
    lost = sum(row["stalled"] for row in answers["workers"] if row["worker"] == played.killed)
    screen.say(
        f"{played.killed} was killed with {lost} jobs in its hands; others have done them since."
    )
    screen.title("Look at it")
    screen.say(f"report    {report.as_uri()}")
    screen.say(f"ask more  .pipeline-venv/bin/jobline-pipeline sql --tables {tables}")
    return not wrong


def _run(store: Store, history: Path, objectives: Path, tell: Any) -> None:
    from jobline_pipeline.stream import Following, follow  # noqa: PLC0415 - after Spark's start
    from jobline_pipeline.tables.slo import read_objectives  # noqa: PLC0415 - as above

    following = Following(str(history), objectives=read_objectives(objectives))
    query = follow(store, following, tell=tell, done=lambda *_: None)
    try:
        query.awaitTermination()
    finally:
        query.stop()


def _show(answers: dict[str, list[dict[str, Any]]], screen: Screen) -> None:
    screen.title("Queues (times in ms)")
    screen.table(
        answers["queues"],
        {
            "queue": "queue", "opened": "pushed", "completed": "completed",
            "failed": "failed or lost",
            "wait_p50_ms": "wait p50", "wait_p99_ms": "wait p99", "run_p50_ms": "run p50",
            "run_p99_ms": "run p99",
        },
    )  # fmt: skip
    screen.title("What fails")
    errors = {"failures": "failures", "dead": "dead", "message": "message", "queues": "queues"}
    screen.table(answers["errors"], errors)
    screen.title("What the new version changed")
    screen.table(
        answers["versions"],
        {
            "name": "job", "from_version": "from", "worker_version": "to",
            "failure_rate_before": "failed before", "failure_rate": "failed now",
            "run_p95_before_ms": "run p95 before", "run_p95_ms": "run p95 now",
        },
    )  # fmt: skip
    screen.title("Workers")
    screen.table(
        answers["workers"],
        {
            "worker": "worker", "worker_version": "version", "attempts": "attempts",
            "failure_rate": "failed", "stalled": "leases lost",
        },
    )  # fmt: skip


if __name__ == "__main__":
    typer.run(main)
