"""A worker's stream by bare stubs: credit, settles, revokes, drain, resume."""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc
import pytest
from grpc import aio

from jobline import AsyncClient, DeliveryMode
from jobline.v1 import job_pb2, job_service_pb2
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.testing import RunningServer

MODES = list(DeliveryMode)
Request = job_service_pb2.StreamRequest
Response = job_service_pb2.StreamResponse


class Pool:
    """One stream, with what came in so far."""

    def __init__(self, channel: aio.Channel) -> None:
        self.call = JobServiceStub(channel).Stream()
        self.jobs: list[job_pb2.LeasedJob] = []
        self.confirms: list[job_service_pb2.StreamConfirm] = []
        self.revokes: list[job_service_pb2.StreamRevoke] = []
        self.opened = job_service_pb2.StreamOpened()
        self.goaway = job_service_pb2.StreamGoaway()

    async def open(self, *, window: int, session: str = "", names: tuple[str, ...] = ()) -> None:
        opening = job_service_pb2.StreamOpen(
            worker=job_service_pb2.WorkerDescription(id="w"),
            queues=[job_service_pb2.QueueWeight(queue="mail")],
            handlers=[
                job_service_pb2.HandlerDescription(queue="mail", name=name) for name in names
            ],
            session=session,
        )
        wanted = job_service_pb2.StreamWindow(max_in_flight=window)
        await self.call.write(Request(open=opening, window=wanted))
        while not self.opened.session:
            await self.receive()

    async def receive(self) -> None:
        """Takes one frame."""
        frame = await self.call.read()
        assert isinstance(frame, Response), frame
        self.jobs.extend(frame.jobs)
        self.confirms.extend(frame.confirms)
        self.revokes.extend(frame.revokes)
        if frame.HasField("opened"):
            self.opened = frame.opened
        if frame.HasField("goaway"):
            self.goaway = frame.goaway

    async def receive_jobs(self, count: int) -> list[job_pb2.LeasedJob]:
        """Waits until so many jobs have come in all."""
        while len(self.jobs) < count:
            await self.receive()
        return self.jobs

    async def ack(self, *jobs: job_pb2.LeasedJob, seq: int = 0) -> None:
        settle = job_service_pb2.StreamSettle(
            seq=seq,
            ack_ids=[job.id for job in jobs],
            ack_deliveries=[job.delivery for job in jobs],
        )
        await self.call.write(Request(settles=[settle]))


@pytest.fixture
async def channel(server: RunningServer) -> AsyncIterator[aio.Channel]:
    """A channel of its own: what happens to a stream happens to nobody else."""
    async with aio.insecure_channel(server.address) as connected:
        yield connected


async def test_never_more_is_unfinished_than_the_window(
    client: AsyncClient, channel: aio.Channel
) -> None:
    """A settled job frees its place at once."""
    await client.push_payloads("mail", [b"x"] * 10)
    pool = Pool(channel)
    await pool.open(window=3)
    first = (await pool.receive_jobs(3))[0]
    assert (await client.queues.get("mail")).counts.active == 3
    await pool.ack(first, seq=1)
    await pool.receive_jobs(4)
    assert (await client.queues.get("mail")).counts.active == 3
    assert (await client.queues.get("mail")).counts.completed == 1


async def test_a_confirm_follows_the_commit_and_names_what_was_not_done(
    client: AsyncClient, channel: aio.Channel
) -> None:
    """By index; a foreign delivery changes nothing."""
    await client.push("mail", b"x")
    pool = Pool(channel)
    await pool.open(window=5)
    (job,) = await pool.receive_jobs(1)
    foreign = job_pb2.LeasedJob(id=job.id, delivery=job.delivery + 1)
    await pool.ack(foreign, job, seq=7)
    while not pool.confirms:
        await pool.receive()
    (confirm,) = pool.confirms
    assert confirm.seq == 7
    lost = job_service_pb2.SETTLE_OUTCOME_LEASE_LOST
    assert [(one.index, one.outcome) for one in confirm.exceptions] == [(0, lost)]


async def test_new_jobs_come_by_themselves_and_only_those_it_handles(
    client: AsyncClient, channel: aio.Channel
) -> None:
    """A job nobody handles waits and is counted; it keeps nobody back."""
    pool = Pool(channel)
    await pool.open(window=5, names=("welcome",))
    await client.push("mail", b"x", name="other")
    handled = await client.push("mail", b"x", name="welcome")
    (job,) = await pool.receive_jobs(1)
    assert job.id == handled.id
    counts = (await client.queues.get("mail")).counts
    assert (counts.ready, counts.unhandled) == (1, 1)


@pytest.mark.parametrize("delivery", MODES)
async def test_a_cancelled_job_is_revoked(
    client: AsyncClient, channel: aio.Channel, delivery: DeliveryMode
) -> None:
    """Its worker is told at once."""
    pushed = await client.push("mail", b"x", delivery=delivery)
    pool = Pool(channel)
    await pool.open(window=5)
    await pool.receive_jobs(1)
    await client.jobs.cancel(pushed.id)
    while not pool.revokes:
        await pool.receive()
    (revoke,) = pool.revokes
    cancelled = job_service_pb2.REVOKE_REASON_CANCELLED
    assert (revoke.id, revoke.reason) == (pushed.id, cancelled)


async def test_an_attempt_that_takes_too_long_is_revoked(
    client: AsyncClient, channel: aio.Channel, server: RunningServer
) -> None:
    """Its worker is told why, so that it can stop."""
    pushed = await client.push("mail", b"x", attempt_timeout=5)
    pool = Pool(channel)
    await pool.open(window=5)
    await pool.receive_jobs(1)
    server.advance(5_000)
    while not pool.revokes:
        await pool.receive()
    (revoke,) = pool.revokes
    timeout = job_service_pb2.REVOKE_REASON_TIMEOUT
    assert (revoke.id, revoke.reason) == (pushed.id, timeout)


@pytest.mark.parametrize("delivery", MODES)
async def test_a_session_that_comes_back_keeps_its_leases(
    client: AsyncClient, channel: aio.Channel, server: RunningServer, delivery: DeliveryMode
) -> None:
    """Its jobs go to nobody else meanwhile, and count against the new stream's window."""
    await client.push_payloads("mail", [b"x"] * 3, delivery=delivery)
    pool = Pool(channel)
    await pool.open(window=2)
    held = [(job.id, job.delivery) for job in await pool.receive_jobs(2)]
    # A call that breaks while its frame is being written gives the jobs back: until that is over.
    await client.queues.get("mail")
    pool.call.cancel()
    again = Pool(channel)
    await again.open(window=2, session=pool.opened.session)
    assert again.opened.resumed
    resumed = zip(again.opened.held_ids, again.opened.held_deliveries, strict=True)
    assert sorted(resumed) == sorted(held)
    server.advance(20_000)
    assert (await client.queues.get("mail")).counts.active == 2
    await again.ack(*(job_pb2.LeasedJob(id=i, delivery=d) for i, d in held), seq=1)
    while not again.confirms:
        await again.receive()
    assert not again.confirms[0].exceptions


@pytest.mark.parametrize("grace", [None, 2])
async def test_a_broken_streams_jobs_go_on_after_the_grace(
    client: AsyncClient, channel: aio.Channel, server: RunningServer, grace: int | None
) -> None:
    """Fifteen seconds, not the whole lease, or as its queue says; it costs a stall."""
    await client.queues.update("mail", disconnect_grace=grace)
    pushed = await client.push("mail", b"x", options=None)
    pool = Pool(channel)
    await pool.open(window=1)
    await pool.receive_jobs(1)
    pool.call.cancel()
    # Until the server has seen the connection break.
    assert await server.runtime.streams.wait_empty(50)
    server.advance(14_000 if grace is None else 1_000)
    assert await client.pull("mail") == []
    server.advance(3_000)
    (again,) = await client.pull("mail", wait=5)
    assert again.id == pushed.id
    assert (await client.jobs.get(pushed.id)).stalls == 1


async def test_drain_ends_with_the_last_confirm_and_ok(
    client: AsyncClient, channel: aio.Channel
) -> None:
    """A polite stop: finish, half-close, last confirm; what is left goes back and costs nothing."""
    await client.push_payloads("mail", [b"x"] * 2)
    pool = Pool(channel)
    await pool.open(window=2)
    first, second = await pool.receive_jobs(2)
    await pool.call.write(Request(drain=True))
    await pool.ack(first, seq=3)
    await pool.call.done_writing()
    while not pool.confirms:
        await pool.receive()
    assert await pool.call.read() is aio.EOF
    assert await pool.call.code() is grpc.StatusCode.OK
    (again,) = await client.pull("mail", wait=5)
    assert again.id == second.id
    job = await client.jobs.get(second.id)
    assert (job.failed, job.stalls) == (0, 0)


@pytest.mark.parametrize(
    "frame",
    [
        Request(),
        Request(window=job_service_pb2.StreamWindow(max_in_flight=1)),
        Request(open=job_service_pb2.StreamOpen()),
    ],
    ids=["empty", "no open", "open without queues"],
)
async def test_a_bad_first_frame_ends_the_stream_with_a_status(
    client: AsyncClient, channel: aio.Channel, frame: Request
) -> None:
    """It says what was wrong."""
    call = JobServiceStub(channel).Stream()
    await call.write(frame)
    code = await call.code()
    refused = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION}
    assert code in refused
    assert await call.details()
