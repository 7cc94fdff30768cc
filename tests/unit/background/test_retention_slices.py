"""Retention goes over many queues in slices, and a query that fails delays no other queue."""

from __future__ import annotations

import pytest

from jobline_server.engine.limits import HOUR_MS
from jobline_server.engine.values import JobState
from jobline_server.runtime.ended import due, retention
from tests.unit.background.conftest import Keeping
from tests.unit.rounds import rounds_of


async def test_run_over_many_queues_yields(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial C5: checking a hundred thousand queues blocked the loop for 0.8 s."""
    monkeypatch.setattr(retention, "STEP_ITEMS", 5)
    for number in range(20):
        await keeping.cancel(queue=f"queue-{number}")
    await keeping.after(0)
    for number in range(20):
        await keeping.cancel(queue=f"queue-{number}")
    counts, rounds = await rounds_of(keeping.after(0))
    # Each queue is scheduled, and checked for evictions.
    assert (counts, rounds > 2 * 20 // 5) == ({}, True)


async def test_places_behind_one_whose_query_fails_stay_due(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed query for the first delayed all others until more jobs ended there."""

    async def failing(*_: object, **__: object) -> None:
        raise OSError

    for queue in ("one", "two", "three"):
        await keeping.cancel(queue=queue)
    await keeping.after(0)
    with monkeypatch.context() as patch:
        patch.setattr(due, "past_age", failing)
        with pytest.raises(OSError):  # noqa: PT011  # the very one from above
            await keeping.after(2 * HOUR_MS)
    assert await keeping.after(1) == {"staled": 3}


async def test_run_that_goes_on_leaves_what_has_just_ended(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such runs come twenty times a second. If each wrote what had ended since the last, nothing
    that a queue does not keep would be left out any more, and runs would have no end: a server that
    completed half a million jobs a second fell to half of that.
    """
    monkeypatch.setattr(retention, "SLICE_PARTS", 2)
    store = keeping.runtime.ended.ended_store
    await keeping.sets(age_ms=0)
    old = await keeping.cancel(4)
    assert await keeping.after(1) == {"staled": 2}
    (new,) = await keeping.cancel()
    assert await keeping.after(1) == {"staled": 2}
    assert not (await store.get_many([new])).rows
    assert await keeping.after(1) == {}
    assert await keeping.after(1) == {"staled": 1}
    assert await keeping.kept() == dict.fromkeys([*old, new], JobState.STALE)
