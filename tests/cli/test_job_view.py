"""How a job looks to a person."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from rich.console import Console

from jobline import Job
from jobline.cli.job_view import columns, full
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
