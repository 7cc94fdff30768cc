"""What a cancel notes of the jobs that waited, for those who undo it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobline_server.engine.commands import Pull, Push
from jobline_server.engine.operations import CancelledRuns
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import AckLevel, JobOptions
from jobline_server.runtime.calls.bulk_verbs import BulkVerbs
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import BulkResult
from tests.unit.runtime.conftest import working
from tests.unit.runtime.test_durations import push


@pytest.fixture
async def busy(tmp_path: Path) -> AsyncIterator[Runtime]:
    async with working(tmp_path, ManualClock()) as one:
        yield one


async def test_jobs_that_waited_are_noted_with_their_times(busy: Runtime) -> None:
    """Active ones are asked to stop, and jobs that are kept nowhere cannot come back."""
    slot = busy.core.slots.of_queue("mail")
    await push(busy, "mail", payloads=Payloads.of([b"x"] * 3))
    await push(busy, "mail", payloads=Payloads.of([b"y"] * 2), run_at_ms=1 << 45)
    volatile = Push("mail", JobOptions(), payloads=Payloads.of([b"z"]), level=AckLevel.MEMORY)
    await busy.pushes.push(volatile)
    leased = await busy.pulls.pull(Pull((("mail", 1),), max_jobs=1, worker="w", accepts_runs=True))
    first_id = leased.runs[0].first_id
    result = BulkResult(cancelled=CancelledRuns())
    left = BulkVerbs(busy.core).cancel(slot.shard, range(first_id, first_id + 8), result)
    busy.core.after_decision(slot)
    assert (result.count, result.requested) == (5, 1)
    assert result.cancelled is not None
    assert result.cancelled.jobs().runs == ((first_id + 1, 2, 0), (first_id + 3, 2, 1 << 45))
    assert set(left) <= {first_id + 6, first_id + 7}
