"""A pull that is asked again, with the id of the first."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jobline_server.engine.commands import Leased, Pull, Push, Refused
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobState
from jobline_server.runtime import dispatcher
from jobline_server.runtime.calls import pull_dedup
from jobline_server.runtime.runtime import Runtime
from tests.pushed_rows import NewJob, rows_of
from tests.unit.runtime.commits.test_commits import a_moment


async def pushed(runtime: Runtime, *, rows: int, plain: int, queue: str = "mail") -> None:
    keyed = rows_of(NewJob(b"x", DEFAULT_OPTIONS, f"key {index}") for index in range(rows))
    payloads = Payloads.of([b"x"] * plain)
    await runtime.pushes.push(
        Push(queue, DEFAULT_OPTIONS, rows=keyed, payloads=payloads, level=AckLevel.BUFFERED)
    )
    await runtime.core.commits.commit_once()


def asked(request_id: bytes, *, queue: str = "mail", **how: Any) -> Pull:
    how = {"max_jobs": 10, "worker": "w", "accepts_runs": True, **how}
    return Pull(((queue, 1),), request_id=request_id, **how)


async def pulled(runtime: Runtime, request_id: bytes, **how: Any) -> Leased:
    return await runtime.pulls.pull(asked(request_id, **how))


async def waiting(runtime: Runtime, *, wait_ms: int = 20_000) -> asyncio.Task[Leased]:
    """One of several pulls for two jobs that are the same call."""
    pull = asyncio.ensure_future(pulled(runtime, b"r", max_jobs=2, wait_ms=wait_ms))
    await a_moment()
    return pull


def leases(leased: Leased) -> list[tuple[int, int]]:
    return sorted(pull_dedup.leases_of(pull_dedup.runs_of(leased)))


async def test_the_same_pull_again_returns_what_is_still_held(runtime: Runtime) -> None:
    """Members of a run one by one; without what was settled meanwhile."""
    await pushed(runtime, rows=1, plain=3)
    first = await pulled(runtime, b"r")
    runtime.settles.ack([first.runs[0].first_id], [first.runs[0].delivery], {})
    again = await pulled(runtime, b"r")
    assert len(again.jobs) == 3
    assert await pulled(runtime, b"other") == Leased()


async def test_the_same_pull_while_the_first_waits_leases_nothing_of_its_own(
    runtime: Runtime,
) -> None:
    """It is told what the first is told, and no earlier."""
    first, again = [await waiting(runtime) for _ in range(2)]
    await pushed(runtime, rows=0, plain=4)
    told = await first
    assert leases(await again) == leases(told)
    assert told.count() == 2
    assert (await pulled(runtime, b"other")).count() == 2


async def test_a_pull_goes_on_by_itself_when_the_one_it_waited_for_is_cancelled(
    runtime: Runtime,
) -> None:
    """One of those who waited: the others wait for that one."""
    first, *others = [await waiting(runtime) for _ in range(3)]
    first.cancel()
    await a_moment()
    assert not any(other.done() for other in others)
    await pushed(runtime, rows=0, plain=4)
    told = [leases(await other) for other in others]
    assert told[0] == told[1]
    assert (await pulled(runtime, b"other")).count() == 2


async def test_jobs_of_a_cancelled_pull_go_to_the_same_pull_that_waited_for_it(
    runtime: Runtime,
) -> None:
    """It was cancelled when they had come, and before it had been told."""
    first, again = [await waiting(runtime) for _ in range(2)]
    await pushed(runtime, rows=0, plain=2)
    queue = runtime.core.slots[0].shard.queues["mail"]
    assert (queue.counts[JobState.ACTIVE], first.done()) == (2, False)
    first.cancel()
    await a_moment()
    assert (queue.counts[JobState.ACTIVE], again.done()) == (0, False)
    await runtime.core.commits.commit_once()
    assert (await again).count() == 2


async def test_a_pull_that_stops_waiting_for_the_same_one_takes_nothing_from_it(
    runtime: Runtime,
) -> None:
    """Cancelled, or because its own time is over."""
    first, cancelled = [await waiting(runtime) for _ in range(2)]
    cancelled.cancel()
    assert await pulled(runtime, b"r", max_jobs=2, wait_ms=0) == Leased()
    assert await pulled(runtime, b"r", max_jobs=2, wait_ms=1) == Leased()
    await pushed(runtime, rows=0, plain=2)
    assert (await first).count() == 2
    assert cancelled.cancelled()
    assert leases(await pulled(runtime, b"r", max_jobs=2)) == leases(await first)


async def test_an_id_that_got_nothing_may_get_something_later(runtime: Runtime) -> None:
    """Trial A2: an empty reply is not remembered, nor one of which nothing is held any more."""
    assert (await pulled(runtime, b"r", max_jobs=1)).count() == 0
    await pushed(runtime, rows=0, plain=2)
    first = await pulled(runtime, b"r", max_jobs=1)
    assert first.count() == 1
    runtime.settles.ack([first.runs[0].first_id], [first.runs[0].delivery], {})
    assert (await pulled(runtime, b"r", max_jobs=1)).count() == 1


async def test_a_reply_that_nobody_took_gives_its_jobs_back(runtime: Runtime) -> None:
    """Trial A3: at once, to the front, and neither an attempt nor a stall is used."""
    await pushed(runtime, rows=1, plain=1)
    for request_id in (b"", b"r"):
        lost = await pulled(runtime, request_id)
        runtime.pulls.untaken(asked(request_id), lost)
        await runtime.core.commits.commit_once()
    again = await pulled(runtime, b"r")
    assert [lease[0] for lease in leases(again)] == [lease[0] for lease in leases(lost)]
    assert [job.attempt for job in again.jobs] == [1, 1]
    views = [await runtime.jobs.get_job(job.id) for job in again.jobs]
    assert [view.stalls for view in views] == [0, 0]


async def test_leases_that_a_repeat_was_told_stay_when_the_first_reply_is_lost(
    runtime: Runtime,
) -> None:
    """Trial A3: that the first connection broke is why the call was made again."""
    first, again = [await waiting(runtime) for _ in range(2)]
    await pushed(runtime, rows=0, plain=2)
    lost, taken = await first, await again
    runtime.pulls.untaken(asked(b"r", max_jobs=2), lost)
    assert runtime.core.slots[0].shard.queues["mail"].counts[JobState.ACTIVE] == 2
    runtime.pulls.untaken(asked(b"r", max_jobs=2), taken)
    assert runtime.core.slots[0].shard.queues["mail"].counts[JobState.ACTIVE] == 0


async def test_a_caller_that_wants_no_reply_any_more_gives_back_what_it_was_leased(
    runtime: Runtime,
) -> None:
    """Trial A3: by its request id; a call that still waits ends without jobs."""
    await pushed(runtime, rows=0, plain=2)
    queue = runtime.core.slots[0].shard.queues["mail"]
    await pulled(runtime, b"r", max_jobs=2)
    runtime.pulls.give_back(asked(b"r", max_jobs=2))
    assert (queue.counts[JobState.ACTIVE], queue.counts[JobState.READY]) == (0, 2)
    runtime.pulls.give_back(asked(b"r", max_jobs=2))
    call = asyncio.ensure_future(pulled(runtime, b"w", queue="news", wait_ms=20_000))
    await a_moment()
    runtime.pulls.give_back(asked(b"w", queue="news", wait_ms=20_000))
    assert await call == Leased()
    await runtime.core.commits.commit_once()
    assert (await pulled(runtime, b"r", max_jobs=1)).count() == 1
    with pytest.raises(Refused):
        runtime.pulls.give_back(asked(b"r", max_jobs=2))


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_pull_from_many_queues_is_served_over_several_turns_of_the_loop(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, is_cancelled: bool
) -> None:
    """A call that names a thousand queues holds up nobody, and gets all that is ready there. One
    that is cancelled on the way keeps nothing.
    """
    monkeypatch.setattr(dispatcher, "SLICE_HAND_OUTS", 10)
    names = [f"q{number}" for number in range(25)]
    for name in names:
        await pushed(runtime, rows=0, plain=1, queue=name)
    queues = tuple((name, 1) for name in names)
    call = asyncio.create_task(runtime.pulls.pull(Pull(queues, max_jobs=100)))
    for leased in (10, 20):
        await asyncio.sleep(0)
        assert runtime.core.load.active_jobs == leased
    if is_cancelled:
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        assert runtime.core.load.active_jobs == 0
    else:
        assert (await call).count() == 25
