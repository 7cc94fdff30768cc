"""Jobs that others wait for, and whose end nobody tells: they are looked up until it is known."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.dependencies import Dependencies
from jobline_server.engine.rules import DependencyPolicy, JobRules
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, JobOptions, JobState
from jobline_server.runtime import loops
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.ended import parents as parents_module
from jobline_server.runtime.runtime import Runtime
from tests.pushed_rows import NewJob, rows_of
from tests.unit.runtime.conftest import opened
from tests.unit.runtime.ended.ending_jobs import ack, delete_queue, die, leased
from tests.unit.runtime.messages.sending import a_moment, until

WAITS = JobOptions(rules=JobRules(on_dependency_failure=DependencyPolicy.WAIT))
BLOCKED = JobState.BLOCKED


@pytest.fixture
async def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Runtime]:
    """Its commits go by themselves, and pauses take no time."""
    monkeypatch.setattr(parents_module, "pause_after", lambda failures: 0.001 * failures)
    async with opened(tmp_path, ManualClock()) as one:
        committing = asyncio.ensure_future(one.core.commits.run())
        yield one
        await one.parents.stop()
        one.core.commits.close()
        await committing


async def child_of(runtime: Runtime, parent: int) -> int:
    """A job that waits for a retry of its parent, if that died."""
    rows = rows_of([NewJob(b"c", WAITS, ties=Ties(parents=(parent,)))])
    return (await runtime.pushes.push(Push("q", DEFAULT_OPTIONS, rows))).first_id


def state_of(runtime: Runtime, job_id: int) -> JobState | None:
    return runtime.core.slots[0].shard.state_of(job_id)


async def test_ended_parents_of_a_deleted_queue_are_found_to_be_gone(runtime: Runtime) -> None:
    lease = await leased(runtime)
    child = await child_of(runtime, lease.id)
    await die(runtime, lease)
    assert state_of(runtime, child) is BLOCKED
    await delete_queue(runtime, lease.id)
    await until(lambda: state_of(runtime, child) is None)


async def test_what_is_unknown_at_the_start_is_looked_up(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a crash: nobody said that the parent completed."""
    lease = await leased(runtime)
    child = await child_of(runtime, lease.id)
    with monkeypatch.context() as patch:
        patch.setattr(Dependencies, "note_end", lambda *_, **__: None)
        await ack(runtime, lease)
    runtime.core.slots[0].shard.dependencies.find_ended(runtime.core.slots[0].shard.state_of)
    runtime.parents.start()
    await until(lambda: state_of(runtime, child) is JobState.READY)


class FailingLookups:
    """Look-ups that fail before they work."""

    def __init__(self, runtime: Runtime, *failures: Exception) -> None:
        self.failures = list(failures)
        self.asked: list[Sequence[int]] = []
        self._outcomes_of = runtime.outcomes.outcomes_of
        runtime.parents._outcomes = self  # type: ignore[assignment]  # as far as it is used

    async def outcomes_of(self, ids: Sequence[int]) -> dict[int, JobState | None]:
        self.asked.append(list(ids))
        if self.failures:
            raise self.failures.pop(0)
        return await self._outcomes_of(ids)


async def test_look_ups_that_fail_are_tried_again(runtime: Runtime) -> None:
    """A shard that is elsewhere is no failure of this server; a bug is counted."""
    lease = await leased(runtime)
    child = await child_of(runtime, lease.id)
    await die(runtime, lease)
    refused = Refused(RefusalKind.SHARD_UNAVAILABLE, "elsewhere")
    lookups = FailingLookups(runtime, refused, RuntimeError("a bug"))
    record: loops.Record = runtime.core.loops.record("parents")
    runtime.core.slots[0].shard.dependencies.look_up([lease.id])
    runtime.parents.start()
    await until(lambda: not runtime.parents._tasks)
    assert len(lookups.asked) == 3
    assert (record.failures, record.failures_in_a_row) == (1, 0)
    assert state_of(runtime, child) is BLOCKED


async def test_a_parent_that_cannot_be_read_counts_as_deleted(runtime: Runtime) -> None:
    """Nobody will ever know that it completed; its neighbours are read one by one."""
    leases = [await leased(runtime, "mail"), await leased(runtime, "mail")]
    children = [await child_of(runtime, lease.id) for lease in leases]
    for lease in leases:
        await die(runtime, lease)
    damaged = [Refused(RefusalKind.DATA_LOSS, "damaged") for _ in range(2)]
    FailingLookups(runtime, *damaged)
    runtime.core.slots[0].shard.dependencies.look_up([lease.id for lease in leases])
    runtime.parents.start()
    await until(lambda: not runtime.parents._tasks)
    assert [state_of(runtime, child) for child in children] == [None, BLOCKED]


async def test_nothing_is_looked_up_after_the_stop(runtime: Runtime) -> None:
    lease = await leased(runtime)
    await child_of(runtime, lease.id)
    runtime.core.slots[0].shard.dependencies.look_up([lease.id])
    await runtime.parents.stop()
    runtime.parents.start()
    await a_moment()
    assert not runtime.parents._tasks


async def test_a_push_waits_for_what_became_of_its_parents(runtime: Runtime) -> None:
    """The ended store is read before it is decided, and it is decided once."""
    lease = await leased(runtime)
    await ack(runtime, lease)
    child = await child_of(runtime, lease.id)
    assert state_of(runtime, child) is JobState.READY
    with pytest.raises(Refused, match="there is no job 99") as refused:
        await child_of(runtime, 99)
    assert refused.value.kind is RefusalKind.JOB_NOT_FOUND


async def test_few_dependents_go_on_with_the_end_of_their_parent(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the same commit; a failure there leaves them to the timers. One that works again ends the
    row: five in months made the server unhealthy for good.
    """
    lease, other, last = await leased(runtime), await leased(runtime), await leased(runtime)
    first, second = await child_of(runtime, lease.id), await child_of(runtime, other.id)
    await child_of(runtime, last.id)
    await ack(runtime, lease)
    assert state_of(runtime, first) is JobState.READY
    with monkeypatch.context() as patch:
        patch.setattr(Dependencies, "next_told", None)
        await ack(runtime, other)
    assert state_of(runtime, second) is BLOCKED
    record = runtime.core.loops.record("dependents")
    assert (record.failures, record.failures_in_a_row) == (1, 1)
    runtime.timer_loop.run_due()
    assert state_of(runtime, second) is JobState.READY
    await ack(runtime, last)
    assert (record.failures, record.failures_in_a_row) == (1, 0)
