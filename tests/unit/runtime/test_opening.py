"""A runtime needs no more of its stores than their interfaces."""

from __future__ import annotations

from jobline_server.engine.limits import HOUR_MS
from jobline_server.engine.values import JobState
from jobline_server.runtime.clock import ManualClock
from tests.unit.background.conftest import Keeping
from tests.unit.runtime.in_memory import new_stores, started


async def test_stores_in_memory_without_a_disk_are_served() -> None:
    """Jobs are pushed, leased, ended, aged and evicted, also after a restart; nobody asks for the
    room on a disk that is not there.
    """
    stores, clock = new_stores(), ManualClock()
    keeping = Keeping(await started(stores, clock), clock)
    completed, (cancelled,) = await keeping.complete(3, count=2), await keeping.cancel()
    await keeping.runtime.stop()
    keeping = Keeping(await started(stores, clock), clock)
    assert await keeping.kept() == {
        **dict.fromkeys(completed, JobState.COMPLETED),
        cancelled: JobState.CANCELLED,
    }
    await keeping.complete(2)
    assert await keeping.after(HOUR_MS + 1) == {"staled": 1, "evicted": 3}
    assert await keeping.after(HOUR_MS) == {}
    assert await keeping.after(1) == {"deleted": 1}
    await keeping.runtime.stop()
