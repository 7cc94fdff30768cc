"""Operations are deleted when they are old, or when there are too many."""

from __future__ import annotations

import pytest

from jobline_server.background import operations as of_task
from jobline_server.background.operations import DeleteOldOperations
from jobline_server.engine import limits
from jobline_server.engine.operations import OperationQuery
from jobline_server.runtime.views import Audit
from tests.unit.background.conftest import QUEUE, Keeping
from tests.unit.runtime.ended.test_full_disk import FullDisk


async def record(keeping: Keeping, count: int) -> None:
    await keeping.sets()
    for _ in range(count):
        await keeping.runtime.queues.pause_queue(QUEUE, Audit("ops", "", "PauseQueue"))
    await keeping.runtime.operations.find(OperationQuery())


async def test_the_newest_of_90_days_are_kept(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In slices, all in one run."""
    monkeypatch.setattr(of_task, "SLICE_OPERATIONS", 2)
    task = DeleteOldOperations(keeping.runtime.core, keeping.runtime.operations)
    await record(keeping, 5)
    assert await task.run_once(keeping.clock.now()) == {"deleted": 0}
    monkeypatch.setattr(limits, "OPERATIONS_KEPT_MAX", 2)
    assert await task.run_once(keeping.clock.now()) == {"deleted": 3}
    keeping.clock.advance(limits.OPERATIONS_KEPT_MS + 1)
    await record(keeping, 1)
    assert await task.run_once(keeping.clock.now()) == {"deleted": 2}
    views, _ = await keeping.runtime.operations.find(OperationQuery())
    assert len(views) == 1


async def test_nothing_is_written_to_a_full_disk(keeping: Keeping) -> None:
    task = DeleteOldOperations(keeping.runtime.core, keeping.runtime.operations)
    await record(keeping, 1)
    keeping.clock.advance(limits.OPERATIONS_KEPT_MS + 1)
    keeping.runtime.core.commits.disk_full = True
    assert await task.run_once(keeping.clock.now()) == {"deleted": 0}


async def test_operations_wait_for_room(keeping: Keeping, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in the journal, and listed once there is room; looks at jobs go on meanwhile."""
    runtime, disk = keeping.runtime, FullDisk(keeping.runtime, monkeypatch)
    [job_id] = await keeping.cancel()
    await runtime.queues.pause_queue(QUEUE, Audit("ops", "", "PauseQueue", "", "o"))
    assert await runtime.operations.get("o") is None
    assert runtime.core.commits.disk_full
    assert await runtime.ended.find(job_id) is not None
    disk.is_full = runtime.core.commits.disk_full = False
    assert await runtime.operations.get("o") is not None
