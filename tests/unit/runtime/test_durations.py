"""How long jobs waited and ran: one observation for what goes together."""

from __future__ import annotations

from typing import Any

import pytest

from jobline_server.engine.commands import FailItem, Pull, Push
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    AckLevel,
    FailAction,
    JobError,
    JobOptions,
)
from jobline_server.runtime import durations
from jobline_server.runtime.calls.pull_dedup import leases_of, runs_of
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.telemetry.calls import Histogram


def counts(histogram: Histogram) -> dict[float, int]:
    """Observations by the upper bound of their bucket."""
    bounds = [*durations.BOUNDS, float("inf")]
    return {bound: count for bound, count in zip(bounds, histogram.buckets, strict=True) if count}


async def push(runtime: Runtime, queue: str = "mail", **columns: Any) -> None:
    """Jobs that are on disk."""
    await runtime.pushes.push(Push(queue, DEFAULT_OPTIONS, level=AckLevel.BUFFERED, **columns))
    await runtime.core.commits.commit_once()


async def settle(runtime: Runtime, queue: str = "mail", *, ok: bool = True) -> None:
    """Pulls what is there, a second later than before, and acks or fails it 50 seconds later."""
    clock = runtime.core.clock
    assert isinstance(clock, ManualClock)
    clock.advance(1_000)
    pull = Pull(((queue, 1),), max_jobs=1_000, wait_ms=0, worker="w", accepts_runs=True)
    leased = await runtime.pulls.pull(pull)
    runs = runs_of(leased)
    jobs = list(leases_of(runs))
    clock.advance(50_000)
    if ok:
        ids, deliveries = zip(*jobs, strict=True)
        runtime.settles.ack(list(ids), list(deliveries), {})
    else:
        items = [FailItem(*job, JobError(), FailAction.RETRY, 600_000) for job in jobs]
        runtime.settles.fail(items)
    await runtime.core.commits.commit_once()


async def test_a_lot_counts_once_for_all_its_jobs(runtime: Runtime) -> None:
    """Trial D12: its jobs waited and ran as long as each other."""
    await push(runtime, payloads=Payloads.of([b"x"] * 500))

    await settle(runtime)

    mail = runtime.core.durations.by_queue["mail"]
    assert counts(mail.waiting) == {1.0: 500}
    assert counts(mail.running) == {60.0: 500}
    assert mail.waiting.seconds == 500
    assert mail.running.seconds == 25_000


async def test_single_jobs_count_too(runtime: Runtime) -> None:
    """Trial D12: those with options of their own."""
    options = [JobOptions(name=name) for name in "abc"]
    await push(runtime, rows=JobColumns([b"x"] * 3, options))

    await settle(runtime)

    mail = runtime.core.durations.by_queue["mail"]
    assert counts(mail.waiting) == {1.0: 3}
    assert counts(mail.running) == {60.0: 3}


async def test_a_delay_is_no_waiting(runtime: Runtime) -> None:
    """Trial D12: neither that of a push nor that of a retry; an attempt that failed did not run
    until it completed."""
    clock = runtime.core.clock
    assert isinstance(clock, ManualClock)
    later = runtime.core.now().wall_ms + 3_600_000
    await push(runtime, payloads=Payloads.of([b"x"] * 2), run_at_ms=later)
    clock.advance(3_600_000)
    while runtime.timer_loop.run_due():
        pass
    await runtime.core.commits.commit_once()
    await settle(runtime, ok=False)
    mail = runtime.core.durations.by_queue["mail"]
    assert counts(mail.waiting) == {1.0: 2}

    clock.advance(600_000)
    while runtime.timer_loop.run_due():
        pass
    await runtime.core.commits.commit_once()
    await settle(runtime)

    assert counts(mail.waiting) == {1.0: 4}
    assert counts(mail.running) == {60.0: 2}


async def test_queues_with_histograms_are_bounded(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial D12: those that come later share one."""
    monkeypatch.setattr(durations, "QUEUES_MAX", 2)
    for queue in ("a", "b", "c", "d"):
        await push(runtime, queue, payloads=Payloads.of([b"x"]))
        await settle(runtime, queue)

    kept = runtime.core.durations.by_queue
    assert set(kept) == {"a", "b", ""}
    assert counts(kept[""].waiting) == {1.0: 2}


async def test_queues_that_are_gone_make_room(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server with a queue for each branch kept the first hundred for ever. Totals never fall."""
    monkeypatch.setattr(durations, "QUEUES_MAX", 2)
    for queue in ("a", "b"):
        await push(runtime, queue, payloads=Payloads.of([b"x"] * 3))
        await settle(runtime, queue)
    kept = runtime.core.durations

    kept.forget_missing({"b"}.__contains__)

    assert set(kept.by_queue) == {"b", ""}
    assert counts(kept.by_queue[""].waiting) == {1.0: 3}
    assert counts(kept.by_queue[""].running) == {60.0: 3}
    assert kept.by_queue[""].running.seconds == 150
    assert kept.handed_out() == 6
    kept.forget_missing({"b"}.__contains__)
    await push(runtime, "c", payloads=Payloads.of([b"x"]))
    await settle(runtime, "c")
    assert set(kept.by_queue) == {"b", "c", ""}
