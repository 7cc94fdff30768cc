"""Who is listed as a worker."""

from __future__ import annotations

import asyncio

import pytest

from jobline.v1.admin_service_pb2 import ListWorkersResponse
from jobline_server.dispatch.frames import Handler, Open, Worker
from jobline_server.engine.job import Job
from jobline_server.engine.lot import RunLease
from jobline_server.rpc.convert.statistics import fill_worker
from jobline_server.runtime import pace
from jobline_server.runtime.calls import statistics
from jobline_server.runtime.calls.streams import shown_name
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.queries.paging import API_PAGE_BYTES_MAX
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import WorkerView
from tests.unit.runtime.calls.test_worker_stream import a_stream


async def listed(runtime: Runtime, *, queue: str = "", size: int = 10) -> list[WorkerView]:
    """All pages; none but the last is short, and the last is not empty."""
    found: list[WorkerView] = []
    token = ""
    while True:
        page, token = await runtime.statistics.list_workers(
            page_size=size, page_token=token, queue=queue
        )
        found += page
        if not token:
            return found
        assert len(page) == size


async def test_a_worker_whose_stream_broke_is_listed_as_long_as_it_has_jobs(
    runtime: Runtime,
) -> None:
    """With when it was last heard; nobody knows its queues any more."""
    clock = runtime.core.clock
    assert isinstance(clock, ManualClock)
    stream, leases = await a_stream(runtime, jobs=3)
    clock.advance(1_000)
    other, _ = await a_stream(runtime)
    last_seen_ms = clock.wall_ms - 1_000
    stream.disconnect()
    shown = {view.session: view for view in await listed(runtime, size=1)}
    lost = shown[shown_name(stream.session.session_id)]
    assert (lost.lost, lost.worker.id, lost.in_flight) == (True, "w", 3)
    assert lost.last_heard_ms == last_seen_ms
    assert not shown[shown_name(other.session.session_id)].lost
    assert [view.session for view in await listed(runtime, queue="mail")] == [
        shown_name(other.session.session_id)
    ]
    ids, deliveries = zip(*leases, strict=True)
    runtime.settles.ack([*ids], [*deliveries], {})
    assert [view.session for view in await listed(runtime)] == [
        shown_name(other.session.session_id)
    ]


async def test_what_a_lost_worker_has_in_flight_is_not_counted_lease_by_lease(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred thousand took 20 ms, in one step."""
    stream, _ = await a_stream(runtime, jobs=3)
    stream.disconnect()
    monkeypatch.delattr(RunLease, "open_totals")
    monkeypatch.delattr(Job, "open_totals")
    (lost,) = await listed(runtime)
    assert (lost.lost, lost.in_flight) == (True, 3)


async def test_a_page_of_workers_ends_when_it_shows_enough_bytes(runtime: Runtime) -> None:
    """A worker that is larger than a page is one of its own."""
    schema = "é" * (32 << 10)
    sessions = [
        runtime.streams.open_stream(
            Open(Worker("w"), (("mail", 1),), (Handler("mail", "send", schema, schema),) * kinds)
        ).session.session_id
        for kinds in (1, 40, 1, *[10] * 5)
    ]
    pages: list[list[str]] = []
    token = ""
    while token or not pages:
        views, token = await runtime.statistics.list_workers(
            page_size=1_000, page_token=token, queue="mail"
        )
        response = ListWorkersResponse(next_page_token=token)
        for view in views:
            fill_worker(response.workers.add(), view)
        assert len(views) == 1 or response.ByteSize() <= API_PAGE_BYTES_MAX
        pages.append([view.session for view in views])
    assert [session for page in pages for session in page] == sorted(map(shown_name, sessions))
    assert [len(page) for page in pages] == [1, 1, 3, 2, 1]


async def test_many_workers_are_listed_over_several_turns_of_the_loop(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connected and lost ones, each once; those that go meanwhile are left out."""
    monkeypatch.setattr(pace, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(statistics, "STEP_WORKERS", 2)
    (lost, _), (ended, leases) = [await a_stream(runtime, jobs=1) for _ in range(2)]
    opening = Open(Worker("w"), (("mail", 1),))
    several = [runtime.streams.open_stream(opening) for _ in range(4)]
    lost.disconnect()
    ended.disconnect()
    task, turns = asyncio.create_task(listed(runtime)), 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
        if turns == 4:
            several[0].disconnect()
            runtime.settles.ack([leases[0][0]], [leases[0][1]], {})
    assert turns > 8
    expected = sorted(shown_name(one.session_id) for one in [lost, *several[1:]])
    assert [view.session for view in await task] == expected
