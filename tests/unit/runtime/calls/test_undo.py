"""Cancels are undone in slices, as far as there is room, and once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import JobState, QueueSettings
from jobline_server.runtime.calls import undo as of_undo
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit, JobFilter, Selection
from tests.unit.runtime.conftest import working
from tests.unit.runtime.test_durations import push

UNDO = Audit("ops", "", "UndoOperation")
CANCEL = Audit("ops", "", "CancelJobs", "", "cancel")
ALL = Selection(filter=JobFilter(queue="mail"))


@pytest.fixture
async def busy(tmp_path: Path) -> AsyncIterator[Runtime]:
    async with working(tmp_path, ManualClock()) as one:
        yield one


async def cancelled(runtime: Runtime, jobs: int = 5) -> None:
    """So many jobs were cancelled by one operation."""
    await push(runtime, "mail", payloads=Payloads.of([b"x"] * jobs))
    done = await runtime.bulk.cancel_jobs(ALL, dry_run=False, audit=CANCEL)
    assert done.count == jobs


def ready(runtime: Runtime) -> int:
    return runtime.queues.get_queue("mail").counts[JobState.READY]


async def test_jobs_are_put_back_in_slices(busy: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_undo, "LOOKUP_JOBS", 2)
    await cancelled(busy)
    done = await busy.undo.undo("cancel", dry_run=False, audit=UNDO)
    assert (done.count, done.skipped, ready(busy)) == (5, 0, 5)


async def test_what_finds_no_room_is_put_back_by_another_undo(busy: Runtime) -> None:
    """The first one counts as interrupted."""
    await cancelled(busy)
    await busy.queues.update_queue("mail", QueueSettings(max_waiting=3), None, Audit())
    done = await busy.undo.undo("cancel", dry_run=False, audit=UNDO)
    assert (done.count, done.skipped, ready(busy)) == (3, 2, 3)
    with pytest.raises(Refused) as caught:
        await busy.undo.undo("cancel", dry_run=False, audit=UNDO)
    assert caught.value.kind is RefusalKind.QUEUE_FULL
    await busy.queues.update_queue("mail", QueueSettings(), None, Audit())
    done = await busy.undo.undo("cancel", dry_run=False, audit=UNDO)
    assert (done.count, done.skipped, ready(busy)) == (2, 3, 5)


async def test_two_undos_at_once_are_one(busy: Runtime) -> None:
    """The second one waits, and finds it done."""
    await cancelled(busy)
    calls = [busy.undo.undo("cancel", dry_run=False, audit=UNDO) for _ in range(2)]
    first, second = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(first, of_undo.Undone)
    assert isinstance(second, Refused)
    assert second.kind is RefusalKind.ALREADY_UNDONE


async def test_jobs_that_are_too_scattered_are_not_undone(
    busy: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "OPERATION_RUNS_MAX", 0)
    await cancelled(busy)
    with pytest.raises(Refused, match="RetryJobs puts them back") as caught:
        await busy.undo.undo("cancel", dry_run=True, audit=UNDO)
    assert caught.value.kind is RefusalKind.NOT_UNDOABLE
