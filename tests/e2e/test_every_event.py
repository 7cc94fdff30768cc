"""Every kind of event that the page lists happens on a real server and is told to watchers, with
its fields and after it is on disk.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from grpc import aio

from jobline import AsyncClient, DeadLetters, Event, EventKind, FlowJob, Retention
from jobline.v1 import job_service_pb2 as pb
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.background.server_notes import NoteServer
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import RunningServer, running_server
from tests.e2e.test_dead_letters import retry_due
from tests.e2e.test_limits import now_of
from tests.e2e.test_retention import HOUR, MINUTE, retain
from tests.e2e.test_schedules import advance
from tests.e2e.test_webhooks import until
from tests.e2e.webhook_receiver import Receiver, receiving, status
from tests.server.conftest import until as reached

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
ROW = re.compile(r"^\| `([A-Z_]+)` \| ", re.MULTILINE)
# For those who watch one job: `tests/e2e/test_partials.py`.
ELSEWHERE = {EventKind.PARTIAL}
OF_NO_QUEUE = ("BATCH_", "WEBHOOK_", "WORKER_", "STORAGE_")
OF_NO_JOB = ("QUEUE_", "GROUP_", "SCHEDULE_", *OF_NO_QUEUE)


def kinds_of_the_page() -> set[EventKind]:
    """The kinds in the table."""
    text = PAGE.read_text(encoding="utf-8")
    part = text.split("event.proto: events -->")[1].split("<!-- end of events")[0]
    return {EventKind[name] for name in ROW.findall(part)}


class Watched:
    """What a watcher of everything has seen; `until` waits for a kind."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._news = asyncio.Event()

    def take(self, event: Event) -> None:
        self.events.append(event)
        self._news.set()

    async def until(self, wanted: set[EventKind]) -> None:
        """Waits until these kinds were seen."""
        missing = wanted
        try:
            async with asyncio.timeout(20):
                while missing := wanted - {event.kind for event in self.events}:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"not told: {sorted(kind.name for kind in missing)}") from None


@asynccontextmanager
async def watching(client: AsyncClient) -> AsyncIterator[Watched]:
    """A watcher that has begun."""
    watched, begun = Watched(), asyncio.Event()

    async def read() -> None:
        events = client.watch()
        async for event, _ in events:
            if event.queue == "begin":
                begun.set()
            else:
                watched.take(event)

    task = asyncio.ensure_future(read())
    async with asyncio.timeout(20):
        while not begun.is_set():
            await client.push("begin", b"")
            await asyncio.sleep(0.01)
    try:
        yield watched
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def jobs_that_work(client: AsyncClient) -> None:
    """Pushed, leased, released, reported on, retried, completed."""
    await client.push("mail", b"x", name="n", job_key="k", group="g", phases=["one"])
    await client.push("mail", b"x", name="n", job_key="k", group="g", phases=["one"])
    (job,) = await client.pull("mail")
    await client.release(job)
    (job,) = await client.pull("mail")
    await client.extend(job, progress=50, message="half")
    await client.fail(job, "again", retry_after=0)
    (job,) = await client.pull("mail", wait=5)
    await client.extend(job, phase="one")
    await client.ack(job)


async def jobs_that_end_otherwise(client: AsyncClient, server: RunningServer) -> None:
    """Blocked, delayed, promoted, changed, cancelled, expired, stalled, dead."""
    first = await client.push("odd", b"x", max_stalls=5)
    await client.push("odd", b"x", depends_on=[first.id])
    (job,) = await client.pull("odd", lease=1)
    server.advance(2_000)
    (job,) = await client.pull("odd", lease=60, wait=5)
    await client.ack(job)
    (job,) = await client.pull("odd", wait=5)
    await client.jobs.cancel(job.id)
    await client.ack(job)
    later = await client.push("odd", b"x", delay=5)
    await client.push("odd", b"x", delay=1)
    await client.jobs.update(later.id, priority=3)
    await client.jobs.promote(later.id)
    server.advance(2_000)
    waits = await client.push("odd", b"x")
    await client.jobs.cancel(waits.id)
    await client.jobs.retry(waits.id)
    await client.push("odd", b"x", ttl=1)
    server.advance(2_000)
    await client.queues.drain("odd")


async def dead_ones(client: AsyncClient, server: RunningServer) -> None:
    """Dead, put back by themselves, expired, evicted; stale and deleted."""
    letters = DeadLetters(auto_retry=True, auto_retry_first_delay="1m", auto_retry_max=1)
    await client.queues.update("dead", dead_letters=letters)
    await client.push("dead", b"x")
    for _ in range(2):
        (job,) = await client.pull("dead", wait=5)
        await client.fail(job, "broken", then="dead")
        await retry_due(server, MINUTE + 1)
    await retain(server, 7 * 24 * HOUR + 1)
    await client.queues.update("dead", retention=Retention(count=1), dead_letters=DeadLetters())
    for _ in range(2):
        await client.push("dead", b"x")
        (job,) = await client.pull("dead")
        await client.fail(job, "broken", then="dead")
    await retain(server)
    other = await client.push("dead", b"x")
    await client.jobs.cancel(other.id)
    await retain(server, HOUR + 1)
    await retain(server, HOUR + 1)


async def queues_and_groups(client: AsyncClient, server: RunningServer) -> None:
    """Paused, limited, resumed, deleted."""
    await client.push("q", b"x", group="g")
    await client.queues.pause("q", reason="hot")
    await client.queues.resume("q")
    until = now_of(server) + timedelta(minutes=1)
    await client.queues.limit("q", until)
    await client.queues.groups.pause("q", "g")
    await client.queues.groups.resume("q", "g")
    await client.queues.groups.limit("q", "g", until)
    await client.queues.delete("q")


async def schedules(client: AsyncClient, server: RunningServer) -> None:
    """Runs that push, that do not, and that are missed."""
    await client.schedules.create("one", "timed", every="1m")
    await advance(server, MINUTE)
    await advance(server, MINUTE)
    await advance(server, 10 * MINUTE)


async def batches(client: AsyncClient) -> None:
    """One that completes, and one that fails."""
    for then in ("ack", "fail"):
        async with await client.batches.create(then) as batch:
            await batch.push("batched", b"x")
        (job,) = await client.pull("batched", wait=5)
        await (client.ack(job) if then == "ack" else client.fail(job, "broken", then="dead"))


async def flows(client: AsyncClient) -> None:
    """One that completes, and one whose root is cancelled."""
    await client.flows.push(FlowJob("flow", children=[FlowJob("flow")]))
    for _ in range(2):
        (job,) = await client.pull("flow", wait=5)
        await client.ack(job)
    pushed = await client.flows.push(FlowJob("flow", children=[FlowJob("flow")]))
    await client.jobs.cancel(pushed.id)


async def webhooks(client: AsyncClient, receiver: Receiver) -> None:
    """One delivered, and one to a receiver that is gone for good."""
    receiver.answers = [status(200), status(410)]
    for name in ("here", "gone"):
        await client.webhooks.create(name, receiver.url, queue="nothing")
        await client.webhooks.test(name)
        await until(client, name, pending=0)


async def of_the_server(server: RunningServer) -> None:
    """A worker that connects and is lost, and a disk that is nearly full."""
    streams = server.server.runtime.streams.open
    async with aio.insecure_channel(server.address) as channel:
        call = JobServiceStub(channel).Stream()
        queues = [pb.QueueWeight(queue="nothing")]
        opening = pb.StreamOpen(worker=pb.WorkerDescription(id="w"), queues=queues)
        await call.write(pb.StreamRequest(open=opening))
        await call.read()
        call.cancel()
    await reached(lambda: not streams)
    server.advance(MINUTE)
    (task,) = [task for task in server.server.background.tasks if isinstance(task, NoteServer)]
    task.low_bytes = 1 << 62


async def test_every_kind_of_the_page_is_told(tmp_path: Path) -> None:
    """And no other. Each has its place, its time and what it is about, and is in the journal."""
    async with (
        running_server(tmp_path, clock=ManualClock(), webhook_private_networks=True) as server,
        AsyncClient(server.address) as client,
        watching(client) as watched,
        receiving() as receiver,
    ):
        await jobs_that_work(client)
        await jobs_that_end_otherwise(client, server)
        await dead_ones(client, server)
        await queues_and_groups(client, server)
        await schedules(client, server)
        await batches(client)
        await flows(client)
        await webhooks(client, receiver)
        await of_the_server(server)
        await watched.until(kinds_of_the_page() - ELSEWHERE)
    for event in watched.events:
        kind = event.kind.name
        assert event.at is not None
        assert event.queue or kind.startswith(OF_NO_QUEUE)
        assert event.offset
        if not kind.startswith(OF_NO_JOB):
            assert event.job_id
            assert event.state or event.state_before


def test_the_page_lists_all_kinds() -> None:
    assert kinds_of_the_page() == set(EventKind) - {EventKind.UNSPECIFIED}
