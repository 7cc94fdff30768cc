"""A pull that is asked again, with the id of the first."""

from __future__ import annotations

import asyncio

import pytest

from jobline_server.engine.commands import Leased, Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel
from jobline_server.runtime import replies
from jobline_server.runtime.runtime import Runtime
from tests.pushed_rows import NewJob, rows_of
from tests.unit.runtime.test_turn import a_moment


async def pushed(runtime: Runtime, *, rows: int, plain: int) -> None:
    keyed = rows_of(NewJob(b"x", DEFAULT_OPTIONS, f"key {index}") for index in range(rows))
    payloads = Payloads.of([b"x"] * plain)
    await runtime.push(
        Push("mail", DEFAULT_OPTIONS, rows=keyed, payloads=payloads, level=AckLevel.BUFFERED)
    )
    await runtime.core.commits.commit_once()


async def pulled(
    runtime: Runtime, request_id: bytes, *, max_jobs: int = 10, wait_ms: int = 0
) -> Leased:
    return await runtime.pull(
        queues=[("mail", 1)],
        max_jobs=max_jobs,
        wait_ms=wait_ms,
        lease_ms=None,
        worker="w",
        request_id=request_id,
        accepts_runs=True,
        names=frozenset(),
    )


async def waiting(runtime: Runtime, *, wait_ms: int = 20_000) -> asyncio.Task[Leased]:
    """One of several pulls for two jobs that are the same call."""
    pull = asyncio.ensure_future(pulled(runtime, b"r", max_jobs=2, wait_ms=wait_ms))
    await a_moment()
    return pull


def leases(leased: Leased) -> list[tuple[int, int]]:
    return sorted(replies.leases_of(replies.runs_of(leased)))


async def test_the_same_pull_again_returns_what_is_still_held(runtime: Runtime) -> None:
    """Members of a run one by one; without what was settled meanwhile."""
    await pushed(runtime, rows=1, plain=3)
    first = await pulled(runtime, b"r")
    runtime.settles.ack([first.runs[0].first_id], [first.runs[0].delivery], {})
    again = await pulled(runtime, b"r")
    assert len(again.jobs) == 3
    assert await pulled(runtime, b"other") == Leased()


async def test_what_is_remembered_of_pulls_has_a_bound(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run is one thing to remember, however long; the oldest pull is forgotten first."""
    monkeypatch.setattr(replies, "REMEMBERED_LEASES_MAX", 5)
    await pushed(runtime, rows=6, plain=100)
    for request_id in (b"1", b"2"):
        await pulled(runtime, request_id, max_jobs=3)
    await pulled(runtime, b"3", max_jobs=100)
    counts = {name: (await pulled(runtime, name)).count() for name in (b"3", b"2", b"1")}
    assert counts == {b"3": 100, b"2": 3, b"1": 0}


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
    queue = runtime.core.shards[0].queues["mail"]
    assert (queue.active, first.done()) == (2, False)
    first.cancel()
    await a_moment()
    assert (queue.active, again.done()) == (0, False)
    await runtime.core.commits.commit_once()
    assert (await again).count() == 2


async def test_a_pull_that_stops_waiting_for_the_same_one_takes_nothing_from_it(
    runtime: Runtime,
) -> None:
    """Cancelled, or because its own time is over."""
    first, cancelled = [await waiting(runtime) for _ in range(2)]
    cancelled.cancel()
    assert await pulled(runtime, b"r", wait_ms=0) == Leased()
    assert await pulled(runtime, b"r", wait_ms=1) == Leased()
    await pushed(runtime, rows=0, plain=2)
    assert (await first).count() == 2
    assert cancelled.cancelled()
    assert leases(await pulled(runtime, b"r")) == leases(await first)
