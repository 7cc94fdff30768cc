"""Retention works in slices: each finds what is due, changes it, and says if there may be more."""

from __future__ import annotations

import asyncio

import pytest

from jobline_server.engine.limits import HOUR_MS
from jobline_server.engine.values import JobState
from jobline_server.runtime.ended import retention
from jobline_server.runtime.ended.retention import EndedRetention, Slice, in_steps
from tests.unit.background.conftest import Keeping
from tests.unit.rounds import rounds_of

COMPLETED, CANCELLED, STALE = JobState.COMPLETED, JobState.CANCELLED, JobState.STALE
EVERYTHING = 1 << 60


@pytest.fixture
def slices(keeping: Keeping) -> EndedRetention:
    return EndedRetention(keeping.runtime.core, keeping.runtime.ended)


async def test_slice_has_a_bounded_number_of_parts(
    keeping: Keeping, slices: EndedRetention, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest come first."""
    monkeypatch.setattr(retention, "SLICE_PARTS", 2)
    ids = await keeping.cancel(3)
    await slices.write()

    async def age() -> Slice:
        return await slices.stale_by_age(
            "mail", CANCELLED, ended_before_ms=EVERYTHING, keep_newest=0
        )

    assert await age() == Slice(2, is_full=True)
    assert await keeping.kept() == {ids[0]: STALE, ids[1]: STALE, ids[2]: CANCELLED}
    assert await age() == Slice(1, is_full=False)
    assert await age() == Slice(0, is_full=False)


async def test_stale_jobs_are_deleted_in_slices(keeping: Keeping, slices: EndedRetention) -> None:
    first, second = await keeping.cancel(age_ms=0), await keeping.complete(2, age_ms=5)
    await slices.write()
    now_ms = keeping.clock.now().wall_ms
    assert await slices.stale_by_own_age(now_ms) == Slice(1, is_full=False)
    assert await slices.delete_stale(now_ms + HOUR_MS) == Slice(0, is_full=False)
    assert await slices.delete_stale(now_ms + HOUR_MS + 1) == Slice(1, is_full=False)
    assert first[0] not in await keeping.kept()
    assert list(await keeping.kept()) == second


async def test_eviction_is_no_deletion_by_hand(keeping: Keeping, slices: EndedRetention) -> None:
    dead = await keeping.die(3)
    await slices.write()
    done = await slices.evict("mail", JobState.DEAD, keep_count=1, keep_bytes=EVERYTHING)
    assert done == Slice(2, is_full=False)
    assert list(await keeping.kept()) == dead[2:]
    assert keeping.runtime.evictions.count == 2


async def test_own_counts_are_evicted_the_largest_first(
    keeping: Keeping, slices: EndedRetention
) -> None:
    """A slice per count of this queue and state."""
    for count in (1, 3, 1):
        await keeping.complete(count=count)
    await keeping.complete(count=2, queue="other")
    await keeping.cancel(count=5)
    await keeping.runtime.ended.write()
    assert await slices.with_own_counts() == {
        ("mail", COMPLETED),
        ("mail", CANCELLED),
        ("other", COMPLETED),
    }
    done = [slice_ async for slice_ in slices.evict_by_own_count(("mail", COMPLETED))]
    assert done == [Slice(0, is_full=False), Slice(1, is_full=False)]
    assert [one async for one in slices.evict_by_own_count(("nobody", COMPLETED))] == []


async def test_all_queues_that_keep_jobs_are_noted(
    keeping: Keeping, slices: EndedRetention
) -> None:
    """After a start nothing is known of them but that they keep some."""
    await keeping.cancel()
    await keeping.complete(queue="other")
    await keeping.runtime.ended.write()
    slices.hints.take()
    await slices.note_all_queues()
    hints = slices.hints.take()
    assert {key for key in hints if key[0] == "mail"} >= {("mail", CANCELLED)}
    assert hints["other", COMPLETED].first_ms is None
    oldest_ms = await slices.oldest_ms(("other", COMPLETED))
    assert oldest_ms == keeping.clock.now().wall_ms
    assert await slices.oldest_ms(("nobody", COMPLETED)) is None


async def test_slice_waits_for_other_changes_of_ended_jobs(
    keeping: Keeping, slices: EndedRetention
) -> None:
    """Nobody finds jobs due that another caller is about to retry."""
    await keeping.cancel()
    await slices.write()
    async with keeping.runtime.ended.changing:
        waiting = asyncio.ensure_future(
            slices.evict("mail", CANCELLED, keep_count=0, keep_bytes=EVERYTHING)
        )
        for _ in range(9):
            await asyncio.sleep(0)
        assert not waiting.done()
    assert await waiting == Slice(1, is_full=False)


async def test_many_items_leave_the_loop_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "STEP_ITEMS", 3)

    async def walk() -> list[int]:
        return [item async for item in in_steps(range(10))]

    items, rounds = await rounds_of(walk())
    assert (items, rounds) == ([*range(10)], 4)
