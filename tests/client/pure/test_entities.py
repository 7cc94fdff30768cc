"""Entities in the memory of a worker: no server, time by patches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from jobline import (
    CancelReason,
    Context,
    IdleReason,
    InvalidArgument,
    LeasedJob,
    LeaseReason,
    Snooze,
)
from jobline._worker import entities
from jobline._worker.entities import ActiveEntities
from jobline.v1 import job_pb2
from tests.client.pure.counter_entity import LOG, Counter


@pytest.fixture(autouse=True)
def _nothing_yet() -> Iterator[None]:
    LOG.clear()
    yield
    Counter.fails = False


def context(
    key: str, *, continues: bool = True, reason: LeaseReason = LeaseReason.FIRST
) -> Context:
    job = LeasedJob(
        1,
        1,
        "counter",
        job_pb2.JobOptions(),
        b"",
        group=key,
        continues_group=continues,
        reason=reason,
    )
    return Context(job, None, "state")  # type: ignore[arg-type]  # nothing is reported


MADE: list[ActiveEntities] = []


@pytest.fixture(autouse=True)
async def nobody_stays() -> AsyncIterator[None]:
    """The tests share a loop: no timer of one goes off in the next."""
    yield
    while MADE:
        await MADE.pop().close()


def actives(max_active: int = 10, idle_after: float = 60) -> ActiveEntities:
    made = ActiveEntities(Counter, max_active=max_active, idle_after=idle_after)
    MADE.append(made)
    return made


async def settled() -> None:
    """Lets the tasks of `on_idle` run."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_object_is_kept_between_the_jobs_of_an_entity() -> None:
    found = actives()
    assert [await found.run(Counter.add, 2, context("a")) for _ in range(3)] == [2, 4, 6]
    assert await found.run(Counter.read, b"", context("b")) == 0
    assert LOG == [("activate", "a"), ("activate", "b")]


@pytest.mark.parametrize("why", ["another worker", "another attempt"])
async def test_object_whose_memory_may_be_wrong_is_made_anew(why: str) -> None:
    """Another worker has had a job since, or this job was begun before."""
    found = actives()
    await found.run(Counter.add, 2, context("a"))
    if why == "another worker":
        next_one = context("a", continues=False)
    else:
        next_one = context("a", reason=LeaseReason.STALLED)
    assert await found.run(Counter.read, b"", next_one) == 0
    assert LOG == [("activate", "a"), ("lost", "a"), ("activate", "a")]


@pytest.mark.parametrize("outcome", [ValueError("odd"), Snooze(3)])
async def test_job_that_fails_leaves_nothing_in_memory(outcome: Exception) -> None:
    found = actives()
    with pytest.raises(type(outcome)):
        await found.run(Counter.say, outcome, context("a"))
    await settled()
    assert (LOG, len(found)) == ([("activate", "a"), ("lost", "a")], 0)


async def test_outcome_that_is_returned_counts_as_one_that_is_raised() -> None:
    found = actives()
    await found.run(Counter.give, Snooze(3), context("a"))
    assert len(found) == 0


async def test_job_whose_lease_was_lost_leaves_nothing_in_memory() -> None:
    """Also if its method swallows that and returns."""
    found, lost = actives(), context("a")
    lost.cancel(CancelReason.LEASE_LOST)
    assert await found.run(Counter.add, 1, lost) == 1
    await settled()
    assert (LOG, len(found)) == ([("activate", "a"), ("lost", "a")], 0)


async def test_job_that_comes_back_while_its_handler_hangs_gets_an_object_of_its_own() -> None:
    """The lease was lost, the method does not stop; this worker has the job again."""
    found, gate = actives(), asyncio.Event()
    hanging = asyncio.create_task(found.run(Counter.wait, gate, context("a")))
    await settled()
    assert await found.run(Counter.add, 5, context("a")) == 5
    gate.set()
    assert await hanging == 1
    await settled()
    assert await found.run(Counter.read, b"", context("a")) == 5
    assert LOG == [("activate", "a"), ("activate", "a"), ("lost", "a")]


async def test_activation_that_raises_fails_the_job_and_is_tried_again() -> None:
    found = actives()
    Counter.fails = True
    with pytest.raises(ValueError, match="no such counter"):
        await found.run(Counter.read, b"", context("a"))
    assert len(found) == 0
    Counter.fails = False
    assert await found.run(Counter.read, b"", context("a")) == 0
    assert LOG == [("activate", "a"), ("activate", "a")]


async def test_least_recently_used_one_goes_first() -> None:
    found = actives(max_active=2)
    for key in ("a", "b", "a", "c"):
        await found.run(Counter.read, b"", context(key))
    await settled()
    assert LOG[-2:] in (
        [("activate", "c"), ("evicted", "b")],
        [("evicted", "b"), ("activate", "c")],
    )
    assert len(found) == 2


async def test_no_running_one_is_evicted() -> None:
    """There are as many more than may be as run at once."""
    found, gate = actives(max_active=1), asyncio.Event()
    running = asyncio.create_task(found.run(Counter.wait, gate, context("a")))
    await settled()
    await found.run(Counter.read, b"", context("b"))
    assert len(found) == 2
    gate.set()
    assert await running == 1


async def test_idle_ones_are_let_go_of_after_a_while() -> None:
    found = actives(idle_after=0.05)
    await found.run(Counter.read, b"", context("a"))
    await asyncio.sleep(0.03)
    await found.run(Counter.read, b"", context("b"))
    gate = asyncio.Event()
    running = asyncio.create_task(found.run(Counter.wait, gate, context("c")))
    for _ in range(100):
        if len(found) == 1:
            break
        await asyncio.sleep(0.01)
    await settled()
    assert LOG[3:] == [("idle", "a"), ("idle", "b")]
    gate.set()
    await running


async def test_no_more_leave_at_a_time_than_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by time, nor by others that need their places, nor at the end."""
    monkeypatch.setattr(entities, "LEAVING_MAX", 2)
    monkeypatch.setattr(entities, "AGAIN_SECONDS", 0.01)
    at_once = most = 0

    async def on_idle(_self: Counter, _reason: IdleReason) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.01)
        at_once -= 1

    monkeypatch.setattr(Counter, "on_idle", on_idle)
    found = actives(max_active=3, idle_after=0.03)
    for number in range(12):
        await found.run(Counter.read, b"", context(f"k{number}"))
    for _ in range(200):
        if not len(found):
            break
        await asyncio.sleep(0.01)
    assert not len(found)
    for number in range(3):
        await found.run(Counter.read, b"", context(f"k{number}"))
    await found.close()
    assert most == 2


async def test_nor_where_many_jobs_need_places_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each looks again after it has waited: the sweep or another job was faster."""
    monkeypatch.setattr(entities, "LEAVING_MAX", 2)
    monkeypatch.setattr(entities, "IDLE_SECONDS", 0.2)
    at_once = most = 0
    gate = asyncio.Event()

    async def on_idle(_self: Counter, _reason: IdleReason) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await gate.wait()
        at_once -= 1

    monkeypatch.setattr(Counter, "on_idle", on_idle)
    found = actives(max_active=8)
    for number in range(8):
        await found.run(Counter.read, b"", context(f"k{number}"))
    jobs = [
        asyncio.create_task(found.run(Counter.read, b"", context(f"new {number}")))
        for number in range(8)
    ]
    await settled()
    assert (at_once, most) == (2, 2)
    gate.set()
    assert await asyncio.gather(*jobs) == [0] * 8
    assert (most, len(found)) == (2, 8)


async def test_on_idle_that_hangs_or_fails_is_cut_short(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A new object of the entity waits for it, and then goes on."""
    monkeypatch.setattr(entities, "IDLE_SECONDS", 0.05)

    async def on_idle(self: Counter, _reason: IdleReason) -> None:
        if self.key == "a":
            await asyncio.Event().wait()
        raise ValueError("odd")

    monkeypatch.setattr(Counter, "on_idle", on_idle)
    found = actives()
    for key in ("a", "b"):
        await found.run(Counter.read, b"", context(key))
        await found.run(Counter.read, b"", context(key, continues=False))
    assert "on_idle of counter/a took longer than 0.05 s" in caplog.text
    assert "on_idle of counter/b failed (lost)" in caplog.text
    assert len(found) == 2


async def test_all_leave_when_the_worker_stops(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Those that hang are not waited for."""
    found = actives()
    for key in ("a", "b"):
        await found.run(Counter.read, b"", context(key))
    await found.close()
    assert LOG[2:] == [("stopping", "a"), ("stopping", "b")]

    async def on_idle(_self: Counter, _reason: IdleReason) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.Event().wait()

    monkeypatch.setattr(Counter, "on_idle", on_idle)
    monkeypatch.setattr(entities, "IDLE_SECONDS", 0.05)
    await found.run(Counter.read, b"", context("a"))
    await found.close()
    assert "1 entities of counter were dropped as they are" in caplog.text


async def test_job_without_a_group_is_none_of_an_entity() -> None:
    with pytest.raises(InvalidArgument, match="has its key as group"):
        await actives().run(Counter.read, b"", context(""))
