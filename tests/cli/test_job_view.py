"""How a job looks to a person."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from jobline import Job, Obstacle, ObstacleKind
from jobline.cli.job_view import columns, full, obstacle_text
from jobline.cli.output import table
from jobline.v1 import job_pb2

NOW = datetime(2026, 1, 31, 18, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("failed", "released", "cell", "line"),
    [(0, 0, "1", "attempts  1"), (2, 1, "3", "attempts  3 (2 failed, 1 released)")],
)
def test_a_job_that_completed_had_its_attempt(failed, released, cell, line):
    """Trial D7: "attempts 1", not "tries 0"."""
    message = job_pb2.Job(
        id=5, state=job_pb2.JOB_STATE_COMPLETED, attempts=failed, releases=released
    )
    job = Job.from_message(message)
    shown = {column.title: column.shown(job) for column in columns(NOW, payloads=False)}
    assert shown["attempts"] == cell
    console = Console(width=80)
    with console.capture() as captured:
        console.print(full(job, NOW))
    assert line in captured.get()


@pytest.mark.parametrize(
    ("kind", "message", "left", "text"),
    [
        (ObstacleKind.NOT_DUE, "its time has not come", 42.2, ": due in 42 s ({:%H:%M:%S})"),
        (ObstacleKind.NOT_DUE, "its time has not come", -0.3, ": due now ({:%H:%M:%S})"),
        (
            ObstacleKind.NOT_DUE,
            "its time has not come",
            200_000,
            ": due in 2 d 8 h ({:%Y-%m-%d %H:%M:%S})",
        ),
        (
            ObstacleKind.RUNNING,
            "worker 'w1' has it",
            84,
            ": its lease ends in 1 min 24 s ({:%H:%M:%S})",
        ),
        (ObstacleKind.NO_WORKER, "no worker takes from it", None, ""),
    ],
)
def test_an_obstacle_says_when_it_ends(kind, message, left, text):
    """Trial D10: in how long and at what time of the day, as people read it."""
    now = datetime(2026, 1, 31, 12, 0).astimezone()
    until = None if left is None else now + timedelta(seconds=left)
    shown = obstacle_text(Obstacle(kind, message, until, 0), now)
    assert shown == message + (text.format(until) if until else "")


@pytest.mark.parametrize("width", [60, 80, 240])
def test_a_list_keeps_ids_and_lines_on_a_narrow_terminal(width):
    """Trial D10: an id is there to be copied; the error is cut to what the others leave."""
    error = job_pb2.JobError(type="ValueError", message="no such address " * 20)
    message = job_pb2.Job(
        id=8_796_093_022_210, queue="mail", state=job_pb2.JOB_STATE_DEAD, error=error
    )
    jobs = [Job.from_message(message)]
    console = Console(width=width)
    with console.capture() as captured:
        console.print(table(jobs, columns(NOW, payloads=False), width=width))
    lines = captured.get().splitlines()
    assert len(lines) == 2
    assert all(len(line) <= width for line in lines)
    assert "8796093022210  mail" in lines[1]
    assert "ValueErr" in lines[1]
