"""Looks at flows: in slices, and a damaged record is no missing job."""

from __future__ import annotations

import asyncio

import pytest

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.runtime import pace
from jobline_server.runtime.queries import flows
from jobline_server.runtime.queries.flows import FlowNode, FlowView
from jobline_server.runtime.runtime import Runtime
from jobline_server.storage.ended_store import EndedLookup
from tests.unit.runtime.calls.test_flows import leaves, parent, push
from tests.unit.runtime.ended.test_many_ids import committed


async def test_look_rests_between_its_slices(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(flows, "SLICE_JOBS", 1)
    ids = await push(runtime, [leaves("a", 1, 2), parent("b", 0, 1, 2)])
    task = asyncio.ensure_future(
        runtime.flow_queries.get_flow(ids[0], jobs_max=10, depth_max=9, with_results=False)
    )
    rounds = 0
    while not task.done():
        rounds += 1
        await asyncio.sleep(0)
    assert rounds > 3
    assert list(task.result().jobs) == ids


async def test_damaged_job_is_not_taken_for_one_that_is_gone(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def damaged(job_ids: list[int]) -> EndedLookup:
        return EndedLookup({}, list(job_ids), len(job_ids))

    monkeypatch.setattr(runtime.ended.ended_store, "get_many", damaged)
    task = asyncio.ensure_future(
        runtime.flow_queries.get_flow(1, jobs_max=10, depth_max=9, with_results=False)
    )
    await committed(runtime, task) if not task.done() else None
    with pytest.raises(Refused) as refused:
        await task
    assert refused.value.kind is RefusalKind.DATA_LOSS


async def test_jobs_are_written_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "WRITTEN_JOBS", 2)
    view = FlowView({one: FlowNode(one) for one in range(5)})
    assert [[node.id for node in nodes] async for nodes in view.in_slices()] == [
        [0, 1],
        [2, 3],
        [4],
    ]
