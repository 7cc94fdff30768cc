"""Demands: how many workers a queue needs, from samples of what it counts anyway."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from jobline_server.engine.commands import Pull, Push
from jobline_server.engine.decide.queues import decide_delete_queue
from jobline_server.engine.objective import Objective
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, QueueSettings
from jobline_server.runtime import durations, pace
from jobline_server.runtime.calls import demands
from jobline_server.runtime.calls.pull_dedup import leases_of, runs_of
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit, WorkersNeeded
from tests.unit.rounds import rounds_of

OBJECTIVE = Objective(99.0, 30_000)
SECOND_MS = 1_000


async def update(runtime: Runtime, queue: str = "mail", **settings: Any) -> None:
    """Settings that are on disk."""
    change = runtime.queues.update_queue(queue, QueueSettings(**settings), None, Audit())
    pending = asyncio.ensure_future(change)
    while not pending.done():
        await asyncio.sleep(0)
        await runtime.core.commits.commit_once()
    await pending


async def delete(runtime: Runtime, queue: str) -> None:
    """A queue is gone, on disk."""
    shard = runtime.core.slots.of_queue(queue).shard
    decide_delete_queue(shard, runtime.core.now(), queue, force=True)
    await runtime.core.commits.commit_once()


async def work(runtime: Runtime, seconds: int, jobs: int, queue: str = "mail") -> None:
    """For so many seconds: each second these jobs come, are handed out, and completed a second
    later; a sample is kept every ten seconds.
    """
    clock = runtime.core.clock
    assert isinstance(clock, ManualClock)
    for second in range(seconds):
        if jobs:
            await push(runtime, jobs, queue)
            pull = Pull(((queue, 1),), max_jobs=1_000, wait_ms=0, worker="w", accepts_runs=True)
            leases = list(leases_of(runs_of(await runtime.pulls.pull(pull))))
        clock.advance(SECOND_MS)
        if jobs:
            ids, deliveries = zip(*leases, strict=True)
            runtime.settles.ack(list(ids), list(deliveries), {})
            await runtime.core.commits.commit_once()
        if second % 10 == 0:
            await runtime.demands.sample()


async def push(runtime: Runtime, jobs: int, queue: str = "mail") -> None:
    """Jobs that are on disk."""
    payloads = Payloads.of([b"x"] * jobs)
    await runtime.pushes.push(
        Push(queue, DEFAULT_OPTIONS, level=AckLevel.BUFFERED, payloads=payloads)
    )
    await runtime.core.commits.commit_once()


def needed(runtime: Runtime, queue: str = "mail") -> WorkersNeeded:
    found = runtime.queues.get_queue(queue).workers_needed
    assert found is not None
    return found


async def test_a_queue_without_an_objective_says_nothing(runtime: Runtime) -> None:
    """Nobody said what would be enough."""
    await push(runtime, 1)

    assert runtime.queues.get_queue("mail").workers_needed is None
    assert await runtime.demands.sample() == 0


async def test_arrivals_and_run_times_are_those_of_the_last_minutes(runtime: Runtime) -> None:
    """Twenty jobs a second of a second each keep twenty slots busy."""
    await update(runtime, objective=OBJECTIVE)

    await work(runtime, 100, 20)

    found = needed(runtime)
    assert 18 <= found.arrivals <= 22
    assert found.run_seconds == 1
    assert found.backlog == 0
    assert 21 <= found.workers <= 24


async def test_a_backlog_counts_at_once_and_what_it_took_is_held_for_two_minutes(
    runtime: Runtime,
) -> None:
    """A rise must not wait, and workers that stop and start again do nobody good."""
    await update(runtime, objective=OBJECTIVE)
    await work(runtime, 20, 1)
    before = needed(runtime).workers

    await push(runtime, 3_000)
    assert needed(runtime).workers == 100 > before

    pull = Pull((("mail", 1),), max_jobs=10_000, wait_ms=0, worker="w", accepts_runs=True)
    leases = list(leases_of(runs_of(await runtime.pulls.pull(pull))))
    ids, deliveries = zip(*leases, strict=True)
    runtime.settles.ack(list(ids), list(deliveries), {})
    await runtime.core.commits.commit_once()
    await work(runtime, 100, 0)
    assert needed(runtime).workers == 100
    await work(runtime, 500, 0)
    assert needed(runtime).workers == 0


async def test_a_job_of_unknown_length_needs_one_worker(runtime: Runtime) -> None:
    """Also while it runs: a worker that works must not be stopped."""
    await update(runtime, objective=OBJECTIVE)
    await push(runtime, 1)
    assert needed(runtime)[:3] == (1, 1.0, 1)

    await runtime.pulls.pull(Pull((("mail", 1),), max_jobs=1, wait_ms=0, worker="w"))
    assert needed(runtime).workers == 1


async def test_who_is_busy_is_needed_as_long_as_nobody_knows_how_long(
    runtime: Runtime, monkeypatch: Any
) -> None:
    """After a start of the server, KEDA must not stop the workers that it finds."""
    await update(runtime, objective=OBJECTIVE)
    await push(runtime, 80)
    pull = Pull((("mail", 1),), max_jobs=80, wait_ms=0, worker="w", accepts_runs=True)
    await runtime.pulls.pull(pull)
    monkeypatch.setattr(demands, "WorkerStream", SimpleNamespace)
    worker = SimpleNamespace(session=SimpleNamespace(window=SimpleNamespace(jobs=16)))
    monkeypatch.setattr(runtime.core.rings, "consumers", lambda _queue: (worker,))

    assert needed(runtime)[:2] == (5, 16)


async def test_more_workers_than_may_run_jobs_are_not_needed(runtime: Runtime) -> None:
    """By the queue's own limit."""
    await update(runtime, objective=OBJECTIVE, concurrency=5)
    await work(runtime, 20, 2)
    await push(runtime, 3_000)

    assert needed(runtime).workers == 5


async def test_an_objective_that_is_taken_back_is_forgotten(runtime: Runtime) -> None:
    """As is that of a deleted queue."""
    await update(runtime, objective=OBJECTIVE)
    assert await runtime.demands.sample() == 1

    await update(runtime)

    assert runtime.queues.get_queue("mail").workers_needed is None
    assert await runtime.demands.sample() == 0


async def test_queues_with_an_objective_are_bounded(runtime: Runtime, monkeypatch: Any) -> None:
    """The others have none of this number, and all the rest."""
    monkeypatch.setattr(demands, "OBJECTIVES_MAX", 1)
    await update(runtime, "first", objective=OBJECTIVE)
    await update(runtime, "second", objective=OBJECTIVE)

    assert needed(runtime, "first").workers == 0
    assert runtime.queues.get_queue("second").workers_needed is None


async def test_samples_of_many_queues_are_kept_in_slices(
    runtime: Runtime, monkeypatch: Any
) -> None:
    """A hundred queues with a thousand lanes each were one step of 30 to 100 ms. A queue that goes
    meanwhile has no sample.
    """
    monkeypatch.setattr(pace, "SLICE_SECONDS", 0.0)
    names = [f"q{number}" for number in range(5)]
    for name in names:
        await update(runtime, name, objective=OBJECTIVE)

    sampled, rounds = await rounds_of(runtime.demands.sample())
    assert (sampled, rounds > len(names)) == (5, True)

    sampling = asyncio.ensure_future(runtime.demands.sample())
    await asyncio.sleep(0)
    await delete(runtime, names[-1])
    assert await sampling == 4


async def test_deleted_queues_make_room_for_others_with_an_objective(
    runtime: Runtime, monkeypatch: Any
) -> None:
    """After 200 of them no queue had a number of workers any more, until a restart."""
    monkeypatch.setattr(durations, "WITH_OBJECTIVES_MAX", 1)
    await update(runtime, "old", objective=OBJECTIVE)
    await work(runtime, 1, 5, "old")
    handed_out = runtime.core.durations.handed_out()
    assert handed_out == 5

    await delete(runtime, "old")
    await runtime.demands.sample()
    await update(runtime, "new", objective=OBJECTIVE)

    assert needed(runtime, "new").workers == 0
    assert runtime.core.durations.handed_out() == handed_out
