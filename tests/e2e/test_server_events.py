"""Events of the server itself: by filter, over HTTP, and after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from grpc import aio

from jobline import AsyncClient, EventKind, Worker
from jobline.v1 import job_service_pb2 as pb
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.testing import RunningServer, running_server
from tests.server.conftest import until
from tests.server.sse import watching

KINDS = (EventKind.WORKER_CONNECTED, EventKind.WORKER_LOST)


@asynccontextmanager
async def connected(server: RunningServer, worker: str) -> AsyncIterator[None]:
    """A worker's stream, which breaks at the end."""
    async with aio.insecure_channel(server.address) as channel:
        call = JobServiceStub(channel).Stream()
        queues = [pb.QueueWeight(queue="mail")]
        who = pb.WorkerDescription(id=worker, version="1.2")
        await call.write(pb.StreamRequest(open=pb.StreamOpen(worker=who, queues=queues)))
        await call.read()
        try:
            yield
        finally:
            call.cancel()


async def write_notes(server: RunningServer) -> None:
    """Has what was gathered written, and waits until it is on disk."""
    background, runtime = server.server.background, server.server.runtime
    (task,) = [task for task in background.tasks if task.name == "server_notes"]
    await background.run_once(task)
    await runtime.core.commits.wait()


async def test_a_watcher_of_workers_resumes_after_a_restart(tmp_path: Path) -> None:
    """Each is told once, with what it said of itself."""
    async with running_server(tmp_path) as server, AsyncClient(server.address) as client:
        async with aclosing(client.watch(kinds=KINDS)) as events:
            first = asyncio.ensure_future(anext(events))
            await until(server.server.runtime.feed.is_wanted)
            async with connected(server, "a"):
                event, token = await first
        assert (event.kind, event.worker, event.queue) == (EventKind.WORKER_CONNECTED, "a", "")
        assert event.message == "version 1.2; queue mail"
        async with connected(server, "b"):
            await write_notes(server)
    async with (
        running_server(tmp_path) as server,
        AsyncClient(server.address) as client,
        aclosing(client.watch(kinds=KINDS, resume_token=token)) as events,
    ):
        event, _ = await anext(events)
        assert (event.kind, event.worker) == (EventKind.WORKER_CONNECTED, "b")


async def test_browsers_are_told_too(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        async with watching(server, "events=worker_connected") as watcher:
            await watcher.begun()
            async with connected(server, "a"):
                (event,) = await watcher.read(1)
        assert (event.data["kind"], event.data["worker"]) == ("EVENT_KIND_WORKER_CONNECTED", "a")


async def test_a_worker_that_ends_politely_is_not_lost(tmp_path: Path) -> None:
    """Python's worker, which says goodbye."""
    async with running_server(tmp_path, disconnect_grace_seconds=0) as server:
        worker = Worker(server.address)

        @worker.handler("mail")
        def handle(_payload: object) -> None:
            """Is never called."""

        seen: list[EventKind] = []
        async with (
            AsyncClient(server.address) as client,
            aclosing(client.watch(kinds=KINDS)) as events,
        ):
            first = asyncio.ensure_future(anext(events))
            await until(server.server.runtime.feed.is_wanted)
            await asyncio.to_thread(worker.run, exit_when_idle=0.01)
            async with connected(server, "broken"):
                pass
            seen.append((await first).event.kind)
            async for event, _ in events:
                seen.append(event.kind)
                if event.worker == "broken" and event.kind == EventKind.WORKER_LOST:
                    break
    assert seen.count(EventKind.WORKER_CONNECTED) == 2
    assert seen.count(EventKind.WORKER_LOST) == 1
