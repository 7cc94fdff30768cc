"""A start: every shard as it was at its last commit, from any stores."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from jobline_server.engine.commands import Push
from jobline_server.engine.limits import EPOCH_ZERO_MS, HOUR_MS, LEASE_MS_DEFAULT
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, JobState, Now
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.opening import first_epoch, open_runtime
from jobline_server.runtime.runtime import Runtime, RuntimeSettings
from jobline_server.runtime.views import Audit, Selection
from jobline_server.storage.ended_store import EndedOp, PutEnded
from jobline_server.storage.space import NoSpace
from jobline_server.storage.store import DiskFull
from jobline_server.storage.stores import Stores
from tests.unit.background.conftest import Keeping
from tests.unit.runtime.commits.test_commits import a_moment, a_pull
from tests.unit.runtime.conftest import nothing_is_damaged
from tests.unit.runtime.in_memory import new_stores, started

T = TypeVar("T")


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


class Reserve(NoSpace):
    """Room that is given up once."""

    def __init__(self, parts: int) -> None:
        self.parts = parts

    async def give_up_ballast(self, *, last: bool) -> bool:
        assert last, "a start may have all of it"
        self.parts -= 1
        return self.parts >= 0


async def restarted(stores: Stores, clock: ManualClock | None = None, shards: int = 1) -> Runtime:
    """One whose loop is not started. The one before it was killed: nothing of it was closed."""
    return await open_runtime(
        stores,
        shards=shards,
        clock=clock or ManualClock(),
        settings=RuntimeSettings(),
        new_name=lambda: "name",
        report=nothing_is_damaged,
    )


async def committed(runtime: Runtime, call: Coroutine[Any, Any, T]) -> T:
    task = asyncio.ensure_future(call)
    while not task.done():
        await a_moment()
        await runtime.core.commits.commit_once()
    return await task


async def leased(runtime: Runtime, jobs: int = 1) -> tuple[list[int], int]:
    """Ids and the delivery of new jobs."""
    push = Push("mail", DEFAULT_OPTIONS, payloads=Payloads.of([b"x"] * jobs))
    await committed(runtime, runtime.pushes.push(push))
    (run,) = (await a_pull(runtime)).runs
    await runtime.core.commits.commit_once()
    return list(range(run.first_id, run.first_id + jobs)), run.delivery


async def completed(runtime: Runtime, jobs: int = 1) -> list[int]:
    """Jobs that ended; the ended store has not been written since."""
    ids, delivery = await leased(runtime, jobs)
    await committed(runtime, runtime.settle_calls.ack(ids, [delivery] * jobs, {}))
    return ids


@pytest.mark.parametrize(
    ("wall_ms", "epoch"),
    [
        (EPOCH_ZERO_MS + 5_000, 5),
        (EPOCH_ZERO_MS + 5_999, 5),
        (EPOCH_ZERO_MS + 999, 1),
        (EPOCH_ZERO_MS, 1),
        (0, 1),
    ],
)
def test_first_epochs_are_seconds_and_never_0(wall_ms: int, epoch: int) -> None:
    """A copy of the store that is opened later has a higher one; a clock may be anywhere."""
    assert first_epoch(Now(wall_ms, 0)) == epoch


async def test_each_start_has_a_higher_epoch_wherever_the_clock_was_set() -> None:
    """No delivery is given twice."""
    stores, clock = new_stores(), ManualClock()
    epochs = []
    for step_ms in (0, 0, -HOUR_MS, 2 * HOUR_MS):
        clock.wall_ms += step_ms
        epochs.append((await restarted(stores, clock)).core.slots[0].shard.epoch)
    assert epochs == sorted(set(epochs))
    assert epochs[-1] == first_epoch(clock.now())


async def test_0_shards_are_as_many_as_there_are() -> None:
    stores = new_stores()
    await restarted(stores, shards=3)
    runtime = await restarted(stores, shards=0)
    assert [slot.number for slot in runtime.core.slots] == [0, 1, 2]
    assert runtime.core.slots.total == 3


async def test_what_had_just_ended_is_kept_and_counted_after_a_crash() -> None:
    """The journal has it still. A second start finds it written."""
    stores = new_stores()
    ids = await completed(await restarted(stores), 3)
    for _ in range(2):
        runtime = await restarted(stores)
        assert runtime.queues.get_queue("mail").counts[JobState.COMPLETED] == 3
        assert runtime.core.load.live_jobs == 0
        views = [await runtime.jobs.get_job(job_id) for job_id in ids]
        assert {view.state for view in views} == {JobState.COMPLETED}


async def test_each_lease_has_its_full_time_after_a_start() -> None:
    """Its worker could not be heard meanwhile."""
    stores, clock = new_stores(), ManualClock()
    ((job_id,), delivery) = await leased(await restarted(stores, clock))
    clock.advance(LEASE_MS_DEFAULT - 1)
    runtime = await restarted(stores, clock)
    view = await runtime.jobs.get_job(job_id)
    assert (view.state, view.delivery) == (JobState.ACTIVE, delivery)
    assert view.lease_until_ms == clock.wall_ms + LEASE_MS_DEFAULT


async def test_a_journal_goes_on_where_it_ended() -> None:
    """Rows since the last checkpoint are counted, so that the next one comes in time; ids that were
    set aside and not given out are skipped.
    """
    stores, clock = new_stores(), ManualClock()
    before = await restarted(stores, clock)
    (first,) = await completed(before)
    old = before.core.slots[0].position
    runtime = await restarted(stores, clock)
    position = runtime.core.slots[0].position
    assert (position.chain, position.journal_rows) == (old.chain, old.journal_rows)
    assert (position.journal_bytes, position.checkpoint_ms) == (old.journal_bytes, clock.wall_ms)
    (second,) = await completed(runtime)
    assert first < second < position.id_ceiling


async def test_what_has_ended_waits_where_a_start_finds_no_room_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that could not start on a full disk could not be told to delete either."""
    stores = new_stores()
    runtime = await restarted(stores)
    (job_id, other_id) = await completed(runtime, 2)
    write, is_full = stores.ended_store.write, True

    async def write_once_there_is_room(ops: Sequence[EndedOp]) -> None:
        if is_full and any(isinstance(op, PutEnded) for op in ops):
            raise DiskFull
        await write(ops)

    monkeypatch.setattr(stores.ended_store, "write", write_once_there_is_room)
    runtime = await restarted(stores)
    assert runtime.core.commits.disk_full
    assert runtime.core.slots[0].shard.queues["mail"].kept() == {JobState.COMPLETED: 2}
    assert (await runtime.jobs.get_job(job_id)).state is JobState.COMPLETED
    assert await stores.ended_store.counts() == {}
    is_full = runtime.core.commits.disk_full = False
    await runtime.ended.write()
    assert await stores.ended_store.counts() == {("mail", JobState.COMPLETED): 2}
    assert (await runtime.jobs.get_job(other_id)).state is JobState.COMPLETED


async def test_changes_are_written_by_a_start_on_a_full_disk_with_all_of_the_reserve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They make room; with none for them the start says that the disk is full."""
    stores = new_stores()
    runtime = await restarted(stores)
    (job_id,) = await completed(runtime)
    await runtime.ended.write()
    deleted = asyncio.ensure_future(
        runtime.bulk.delete_jobs(
            Selection(ids=(job_id,)),
            dry_run=False,
            audit=Audit(verb="DeleteJobs", principal="me"),
        )
    )
    while not deleted.done():
        await a_moment()
        await runtime.core.commits.commit_once()
    write = stores.ended_store.write
    space = Reserve(1)

    async def write_with_the_reserve(ops: Sequence[EndedOp]) -> None:
        if space.parts or any(isinstance(op, PutEnded) for op in ops):
            raise DiskFull
        await write(ops)

    monkeypatch.setattr(stores.ended_store, "write", write_with_the_reserve)
    runtime = await restarted(replace(stores, space=space))
    assert await stores.ended_store.counts() == {}
    assert runtime.core.slots[0].shard.queues["mail"].kept() == {}
    space.parts = 1_000
    with pytest.raises(DiskFull):
        await restarted(replace(stores, space=Reserve(0)))
