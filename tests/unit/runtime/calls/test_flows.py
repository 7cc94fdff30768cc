"""Pushes of flows: all parts in one commit, or none of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.decide.admin import decide_cancel, decide_delete_waiting
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.queues import decide_update_queue
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobState, QueueSettings
from jobline_server.runtime import pace as pace_module
from jobline_server.runtime.calls import flows
from jobline_server.runtime.calls.flows import FlowPart, placed, with_request_id
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.conftest import opened
from tests.unit.runtime.ended.test_many_ids import committed

SHARDS = 4


def leaves(queue: str, *places: int) -> FlowPart:
    payloads = Payloads.of([b"x"] * len(places))
    command = Push(queue, DEFAULT_OPTIONS, payloads=payloads, level=AckLevel.FSYNCED)
    return FlowPart(command, places, ())


def parent(queue: str, place: int, *children: int, group: str = "", **options) -> FlowPart:
    own = replace(DEFAULT_OPTIONS, **options)
    rows = JobColumns([b"p"], [own], ties=[Ties(group)])
    command = Push(queue, DEFAULT_OPTIONS, rows=rows, level=AckLevel.FSYNCED)
    return FlowPart(command, [place], [children])


def a_flow(request_id: str = "", digest: int = 1) -> list[FlowPart]:
    """A parent, the first job, with two children in two other queues."""
    parts = [leaves("a", 1), leaves("c", 2), parent("b", 0, 1, 2)]
    if not request_id:
        return parts
    return [with_request_id(part, request_id, at, digest) for at, part in enumerate(parts)]


async def push(runtime: Runtime, parts: Sequence[FlowPart | None], jobs: int = 3) -> list[int]:
    """Pushes a flow, whose commit goes by itself."""
    task = asyncio.ensure_future(runtime.flows.push_flow(jobs, iter(parts)))
    while not task.done():
        await asyncio.sleep(0)
        async with runtime.core.commits.exclusive:
            await runtime.core.commits.commit_once()
    return task.result()


def state(runtime: Runtime, job_id: int) -> JobState | None:
    slot = runtime.core.slots.find_by_id(job_id)
    return None if slot is None else slot.shard.state_of(job_id)


def live(runtime: Runtime) -> int:
    return runtime.core.load.live_jobs


async def until(condition: Callable[[], bool]) -> None:
    """The loop goes on until the condition holds."""
    while True:
        if condition():
            return
        await asyncio.sleep(0)


@pytest.fixture(params=[0.0, 1.0])
def pace(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop is free after each part, or never."""
    monkeypatch.setattr(pace_module, "SLICE_SECONDS", request.param)


@pytest.mark.usefixtures("pace")
async def test_g26_all_parts_are_in_one_commit(tmp_path: Path) -> None:
    """Across shards; and a start finds all of it."""
    async with opened(tmp_path, ManualClock(), shards=SHARDS) as runtime:
        before = runtime.core.commits.commits
        task = asyncio.ensure_future(runtime.flows.push_flow(3, iter([None, *a_flow()])))
        while live(runtime) != 3:
            # Each part is decided while no commit may be cut.
            assert not live(runtime) or runtime.core.commits.exclusive.locked()
            await asyncio.sleep(0)
        await until(lambda: not runtime.core.commits.exclusive.locked())
        assert not task.done()
        await runtime.core.commits.commit_once()
        ids = await task
        assert runtime.core.commits.commits == before + 1
        assert [state(runtime, one) for one in ids] == [
            JobState.BLOCKED,
            JobState.READY,
            JobState.READY,
        ]
    async with opened(tmp_path, ManualClock(), shards=SHARDS) as runtime:
        assert state(runtime, ids[0]) is JobState.BLOCKED
        slot = runtime.core.slots.find_by_id(ids[0])
        assert slot is not None
        assert slot.shard.jobs[ids[0]].ties.parents == (ids[1], ids[2])


@pytest.mark.usefixtures("pace")
@pytest.mark.parametrize(
    ("last", "field"),
    [
        (parent("b", 0, 1, 2, group="g", priority=3), "jobs[0].job.options.priority"),
        (parent("full", 0, 1, 2), ""),
    ],
)
async def test_g26_a_refused_flow_leaves_nothing(
    tmp_path: Path, last: FlowPart, field: str
) -> None:
    async with opened(tmp_path, ManualClock(), shards=SHARDS) as runtime:
        await committed_settings(runtime, "full")
        with pytest.raises(Refused) as refused:
            await push(runtime, [*a_flow()[:2], last])
        assert refused.value.field == field
        assert live(runtime) == 0
        assert not any(slot.shard.entries for slot in runtime.core.slots)
        assert not any(slot.shard.queues.get("a") for slot in runtime.core.slots)
        assert not runtime.core.commits.failed.done()


async def committed_settings(runtime: Runtime, queue: str) -> None:
    """A queue in which no job may wait."""
    slot = runtime.core.slots.of_queue(queue)
    decide_update_queue(slot.shard, runtime.core.now(), queue, QueueSettings(max_waiting=0), None)
    await runtime.core.commits.commit_once()


async def test_g26_half_a_flow_is_never_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistake of ours stops the server before the next commit."""
    decide = decide_push
    decided: list[Push] = []

    def breaks(shard, now, command, outcomes):
        if decided:
            raise KeyError
        decided.append(command)
        return decide(shard, now, command, outcomes)

    monkeypatch.setattr(flows, "decide_push", breaks)
    async with opened(tmp_path, ManualClock(), shards=SHARDS) as runtime:
        with pytest.raises(KeyError):
            await runtime.flows.push_flow(3, iter(a_flow()))
        assert live(runtime) == 1
        with pytest.raises(RuntimeError, match="nothing of it is written"):
            await runtime.core.commits.commit_once()
        assert runtime.failed.done()
        with pytest.raises(Refused) as refused:
            await runtime.flows.push_flow(3, iter(a_flow()))
        assert refused.value.kind is RefusalKind.STORAGE_FAILED
    async with opened(tmp_path, ManualClock(), shards=SHARDS) as runtime:
        assert live(runtime) == 0


@pytest.mark.usefixtures("pace")
async def test_same_request_returns_the_same_ids(tmp_path: Path) -> None:
    async with opened(tmp_path, ManualClock(), shards=SHARDS) as runtime:
        ids = await push(runtime, a_flow("r"))
        assert await push(runtime, a_flow("r")) == ids
        assert await push(runtime, a_flow("s")) != ids
        with pytest.raises(Refused) as refused:
            await push(runtime, a_flow("r", digest=2))
        assert refused.value.kind is RefusalKind.IDEMPOTENCY_MISMATCH
        more = with_request_id(leaves("d", 3), "r", 3, 1)
        with pytest.raises(Refused, match="in part only"):
            await push(runtime, [*a_flow("r"), more], 4)
        assert live(runtime) == 6
    async with opened(tmp_path, ManualClock(), shards=SHARDS) as runtime:
        assert await push(runtime, a_flow("r")) == ids


async def test_child_that_is_gone_before_its_parent_is_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody drains its queue between two slices."""
    monkeypatch.setattr(pace_module, "SLICE_SECONDS", 0.0)
    async with opened(tmp_path, ManualClock(), shards=SHARDS) as runtime:
        task = asyncio.ensure_future(runtime.flows.push_flow(3, iter(a_flow())))
        await until(lambda: live(runtime) > 0)
        slot = runtime.core.slots.of_queue("a")
        decide_delete_waiting(slot.shard, runtime.core.now(), [slot.shard.next_id() - 1])
        runtime.core.after_decision(slot)
        await committed(runtime, task)
        ids = task.result()
        assert [state(runtime, one) for one in ids] == [None, None, JobState.READY]
        view = await ended(runtime, ids[0])
        assert view is JobState.DEAD


async def test_child_that_is_gone_before_its_shard_knows_who_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is cancelled right after its parent was decided: the message finds that it has ended."""
    monkeypatch.setattr(pace_module, "SLICE_SECONDS", 0.0)
    async with opened(tmp_path, ManualClock(), shards=SHARDS) as runtime:
        task = asyncio.ensure_future(runtime.flows.push_flow(3, iter(a_flow())))
        await until(lambda: live(runtime) == 3)
        waits, child = runtime.core.slots.of_queue("b"), runtime.core.slots.of_queue("c")
        assert waits is not child
        gone = child.shard.next_id() - 1
        assert child.shard.dependencies.awaited.find(gone) is None
        decide_cancel(child.shard, runtime.core.now(), [gone])
        runtime.core.after_decision(child)
        await committed(runtime, task)
        async with asyncio.timeout(20):
            while state(runtime, task.result()[0]) is not None:
                await committed(runtime, asyncio.ensure_future(asyncio.sleep(0)))


async def ended(runtime: Runtime, job_id: int) -> JobState:
    task = asyncio.ensure_future(runtime.jobs.get_job(job_id))
    await committed(runtime, task)
    return task.result().state


async def test_parts_are_read_before_any_is_decided(runtime: Runtime) -> None:
    def parts() -> Iterator[FlowPart]:
        yield leaves("a", 1)
        raise Refused(RefusalKind.INVALID_FIELD, "no", field="jobs[5]")

    with pytest.raises(Refused, match="no"):
        await runtime.flows.push_flow(3, parts())
    assert live(runtime) == 0


async def test_payloads_are_checked(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    async def misfit(_command: Push) -> None:
        raise Refused(RefusalKind.PAYLOAD_MISFIT, "no", field="payloads[0]")

    checks = runtime.pushes.checks
    monkeypatch.setattr(checks, "may_refuse", lambda queue: queue == "c")
    monkeypatch.setattr(checks, "check", misfit)
    with pytest.raises(Refused) as refused:
        await runtime.flows.push_flow(3, iter(a_flow()))
    assert refused.value.field == "jobs[2].job"


async def test_lost_shard_refuses_the_flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(tmp_path, ManualClock(), shards=SHARDS) as runtime:
        slot = runtime.core.slots.of_queue("b")
        await runtime.core.commits.exclusive.acquire()
        task = asyncio.ensure_future(runtime.flows.push_flow(3, iter(a_flow())))
        await asyncio.sleep(0.01)
        monkeypatch.setattr(slot, "is_closed", True)
        runtime.core.commits.exclusive.release()
        with pytest.raises(Refused) as refused:
            await task
        assert refused.value.kind is RefusalKind.SHARD_UNAVAILABLE
        assert live(runtime) == 0


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("jobs[1].options.lease", "jobs[7].job.options.lease"),
        ("payloads[0]", "jobs[4].job"),
        ("queue", "jobs[4].queue"),
        ("options.limiters", "jobs[4].job.options.limiters"),
        ("request_id", "request_id"),
        ("", ""),
    ],
)
def test_fields_are_those_of_the_flow(field: str, shown: str) -> None:
    refused = Refused(RefusalKind.INVALID_FIELD, "no", field=field)
    assert placed(refused, [4, 7]).field == shown
