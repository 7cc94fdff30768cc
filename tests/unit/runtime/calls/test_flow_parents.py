"""Flows below a job that a worker has: its lease ends with the flow, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.decide.ack import decide_ack
from jobline_server.engine.decide.add_children import FlowParent
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.decide.lease import decide_lease
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.holder import Holder
from jobline_server.engine.values import JobState
from jobline_server.runtime import pace
from jobline_server.runtime.calls import flows
from jobline_server.runtime.calls.flows import FlowPart
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.calls.test_flows import SHARDS, a_flow, leaves, live, state, until
from tests.unit.runtime.conftest import opened

ACTIVE, BLOCKED, READY = JobState.ACTIVE, JobState.BLOCKED, JobState.READY


async def held(runtime: Runtime) -> FlowParent:
    """A job of a lot that a worker has."""
    core, slot = runtime.core, runtime.core.slots.of_queue("parents")
    first = decide_push(slot.shard, core.now(), leaves("parents", 0, 1).command).first_id
    await core.commits.commit_once()
    queue = slot.shard.queues["parents"]
    leased = decide_lease(
        slot.shard, core.now(), queue, Holder("w", ""), max_jobs=1, max_bytes=1 << 20,
        names=None, lease_ms=0,
    )  # fmt: skip
    await core.commits.commit_once()
    return FlowParent(first, leased.runs[0].delivery)


async def push(
    runtime: Runtime, parts: Sequence[FlowPart], parent: FlowParent, jobs: int = 3
) -> list[int]:
    """Pushes a flow below a job, whose commit goes by itself."""
    task = asyncio.ensure_future(runtime.flows.push_flow(jobs, iter(parts), parent))
    while not task.done():
        await asyncio.sleep(0)
        async with runtime.core.commits.exclusive:
            await runtime.core.commits.commit_once()
    return task.result()


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop is free after each part."""
    monkeypatch.setattr(pace, "SLICE_SECONDS", 0.0)


@pytest.mark.usefixtures("apart")
async def test_g26_parent_and_children_are_in_one_commit(tmp_path: Path) -> None:
    """Across shards; and a start finds all of it."""
    async with opened(tmp_path, ManualClock(), shards=SHARDS) as runtime:
        parent = await held(runtime)
        before = runtime.core.commits.commits
        call = runtime.flows.push_flow(3, iter(a_flow("r")), parent)
        task = asyncio.ensure_future(call)
        await until(lambda: state(runtime, parent.id) is BLOCKED)
        assert runtime.core.commits.exclusive.locked()
        await until(lambda: not runtime.core.commits.exclusive.locked())
        assert not task.done()
        await runtime.core.commits.commit_once()
        ids = await task
        assert runtime.core.commits.commits == before + 1
    async with opened(tmp_path, ManualClock(), shards=SHARDS) as runtime:
        slot = runtime.core.slots.find_by_id(parent.id)
        assert slot is not None
        job = slot.shard.jobs[parent.id]
        assert (job.state, job.ties.parents) == (BLOCKED, (ids[0],))
        assert tuple(job.details.parents_left) == (ids[0],)
        # The parent went on, and the answer is known all the same.
        assert await push(runtime, a_flow("r"), parent) == ids


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("how", ["ack", "cancel"])
async def test_lease_that_ends_during_the_checks_stores_nothing(tmp_path: Path, how: str) -> None:
    async with opened(tmp_path, ManualClock(), shards=SHARDS) as runtime:
        parent = await held(runtime)
        slot = runtime.core.slots.of_queue("parents")
        task = asyncio.ensure_future(runtime.flows.push_flow(3, iter(a_flow()), parent))
        await until(runtime.core.commits.exclusive.locked)
        now = runtime.core.now()
        if how == "ack":
            decide_ack(slot.shard, now, [parent.id], [parent.delivery], {})
        else:
            decide_cancel(slot.shard, now, [parent.id])
        runtime.core.after_decision(slot)
        with pytest.raises(Refused) as refused:
            await task
        kind = RefusalKind.LEASE_LOST if how == "ack" else RefusalKind.WRONG_STATE
        assert refused.value.kind is kind
        assert live(runtime) == (1 if how == "ack" else 2)
        assert not runtime.core.commits.failed.done()


@pytest.mark.usefixtures("apart")
async def test_parent_that_is_cancelled_between_two_slices(tmp_path: Path) -> None:
    """It was set aside already: it is CANCELLED, and the flow is one like any other."""
    async with opened(tmp_path, ManualClock(), shards=SHARDS) as runtime:
        parent = await held(runtime)
        slot = runtime.core.slots.of_queue("parents")
        task = asyncio.ensure_future(runtime.flows.push_flow(3, iter(a_flow()), parent))
        await until(lambda: state(runtime, parent.id) is BLOCKED)
        decide_cancel(slot.shard, runtime.core.now(), [parent.id])
        runtime.core.after_decision(slot)
        await until(lambda: not runtime.core.commits.exclusive.locked())
        await runtime.core.commits.commit_once()
        ids = await task
        assert [state(runtime, one) for one in ids] == [BLOCKED, READY, READY]
        assert state(runtime, parent.id) is None
    async with opened(tmp_path, ManualClock(), shards=SHARDS) as runtime:
        assert state(runtime, ids[0]) is BLOCKED
        assert state(runtime, parent.id) is None


@pytest.mark.usefixtures("apart")
async def test_g26_half_of_it_is_never_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistake of ours stops the server; the worker still has the job then."""

    def breaks(shard: object, now: object, command: Push, outcomes: object) -> None:
        raise KeyError

    async with opened(tmp_path, ManualClock(), shards=SHARDS) as runtime:
        parent = await held(runtime)
        monkeypatch.setattr(flows, "decide_push", breaks)
        with pytest.raises(KeyError):
            await runtime.flows.push_flow(3, iter(a_flow()), parent)
        with pytest.raises(RuntimeError, match="nothing of it is written"):
            await runtime.core.commits.commit_once()
    async with opened(tmp_path, ManualClock(), shards=SHARDS) as runtime:
        assert state(runtime, parent.id) is ACTIVE
        assert live(runtime) == 2


async def test_children_of_a_job_count_towards_those_of_the_server(tmp_path: Path) -> None:
    async with opened(tmp_path, ManualClock(), shards=SHARDS) as runtime:
        parent = await held(runtime)
        runtime.core.load.dependencies_max = 2
        with pytest.raises(Refused) as refused:
            await push(runtime, a_flow(), parent)
        assert refused.value.kind is RefusalKind.DEPENDENCIES_FULL
        assert state(runtime, parent.id) is ACTIVE
        assert live(runtime) == 2
        runtime.core.load.dependencies_max = 3
        await push(runtime, a_flow(), parent)
        assert state(runtime, parent.id) is BLOCKED
