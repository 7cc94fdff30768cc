"""The doctor's probe: one job pushed, handed out and acked, with the time each step took.

It shows what counts to users, a durable push and a hand-out, and the server's clock beside ours.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from jobline._enums import SettleOutcome
from jobline.cli.command import Cli
from jobline.cli.durations import show_span
from jobline.cli.findings import Finding, failed, fine, worrying
from jobline.errors import JoblineError

if TYPE_CHECKING:
    from jobline import LeasedJob

QUEUE = "jobline.doctor"
_SKEW_SECONDS_FINE = 1.0
_WAIT_SECONDS = 5.0


def probe(cli: Cli) -> Iterator[Finding]:
    """Pushes a job, works on it, and takes everything away again."""
    from jobline import JobOptions, Retention

    options = JobOptions(name="probe", retention=Retention(remove_on_complete=True), lease=10)
    try:
        asked, began = datetime.now(UTC), time.monotonic()
        pushed = cli.client.push(QUEUE, b"probe", options=options)
        took = time.monotonic() - began
        yield fine("durable push", f"{show_span(took)}, {pushed.ack_level.name}")
        yield from _work(cli, pushed.id, asked, took)
    except JoblineError as error:
        yield failed("push and work", error.message, f"The queue is {QUEUE}.")
    finally:
        _clean_up(cli)


def _work(cli: Cli, job_id: int, asked: datetime, took: float) -> Iterator[Finding]:
    began = time.monotonic()
    jobs = cli.client.pull(QUEUE, max_jobs=100, wait=_WAIT_SECONDS, worker="doctor")
    outcomes = cli.client.ack(*jobs) if jobs else []
    mine = next((job for job in jobs if job.id == job_id), None)
    if mine is None or outcomes[jobs.index(mine)] is not SettleOutcome.DONE:
        advice = f"Is {QUEUE} paused? See `jobline job explain {job_id}`."
        yield failed("hand-out", f"the job was not handed out in {_WAIT_SECONDS:.0f} s", advice)
        return
    yield fine("hand-out", f"{show_span(time.monotonic() - began)} to pull and ack it")
    yield _clock(mine, asked, took)


def _clock(job: LeasedJob, asked: datetime, took: float) -> Finding:
    """The push was stamped between question and answer, so the middle is off by half of it."""
    if job.pushed_at is None:
        return worrying("clock", "the server did not say when the job was pushed", "")
    skew = (job.pushed_at - asked).total_seconds() - took / 2
    side = "ahead of" if skew > 0 else "behind"
    summary = f"{show_span(abs(skew))} {side} ours, ± {show_span(took / 2)}"
    if abs(skew) - took / 2 > _SKEW_SECONDS_FINE:
        return worrying("clock", summary, "Run NTP on both: `--delay` and `--at` use the server's.")
    return fine("clock", summary)


def _clean_up(cli: Cli) -> None:
    try:
        cli.client.queues.delete(QUEUE, force=True)
    except JoblineError as error:
        cli.out.note(f"the queue {QUEUE} is left: {error.message}")
