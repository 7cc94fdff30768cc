"""The worker when its stream breaks, moves, falls silent, or is refused."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import grpc
import pytest

from jobline import ClientClosed, Internal, InvalidArgument, PermissionDenied, Worker
from jobline._worker.shared_session import SharedSession
from jobline.v1 import job_service_pb2 as pb
from tests.client.live.tiny import TinyServer
from tests.client.live.tiny_store import ACTIVE, COMPLETED, READY
from tests.client.live.working import program, working


def goaway(retry_delay_ms):
    frame = pb.StreamResponse()
    frame.goaway.reason = "rotation"
    frame.goaway.close_time.FromMilliseconds(int(time.time() * 1000) + 60_000)
    frame.goaway.retry_delay.FromMilliseconds(retry_delay_ms)
    return frame


WAITS_FOR_A_LINE = """
import sys
from jobline import Worker
worker = Worker(sys.argv[1])

@worker.handler("q")
async def handle(payload):
    print("started", flush=True)
    sys.stdin.readline()

worker.run()
"""


class Holding(Worker):
    """A worker whose handler waits for `go`."""

    def __init__(self, address: str, **settings: Any) -> None:
        super().__init__(address, **settings)
        self.runs = 0
        self.started, self.go = asyncio.Event(), asyncio.Event()
        self.handler("q", payload=bytes)(self.hold)

    async def hold(self, payload):
        self.runs += 1
        self.started.set()
        await self.go.wait()
        return b"done"


@pytest.fixture
def held(tiny):
    """A worker with a handler that waits for the test, and counts how often it runs."""
    return Holding(tiny.address, concurrency=4)


async def moved(tiny, count=2):
    """Waits for the next stream, and returns its port."""
    await tiny.until(
        lambda: tiny.calls["Stream"] >= count and tiny.ports and tiny.ports[-1].session
    )
    return tiny.ports[-1]


async def test_a_broken_stream_costs_no_job(tiny, held):
    """The session comes back, keeps its lease, and the handler never noticed."""
    tiny.push("q", b"")
    async with working(held):
        await held.started.wait()
        first = tiny.ports[0]
        first.break_off()
        second = await moved(tiny)
        assert second is not first
        assert second.session == first.session
        held.go.set()
        await tiny.until(lambda: tiny.jobs(COMPLETED))
    assert (held.runs, held.stats.done, held.stats.lost) == (1, 1, 0)


async def test_what_was_settled_while_there_was_no_stream_is_told_later(tiny, held):
    """Handlers do not wait for connections."""
    tiny.push("q", b"", b"", b"", b"")
    async with working(held):
        await held.started.wait()
        for _ in range(2):
            tiny.refuse("Stream", grpc.StatusCode.UNAVAILABLE, "not now")
        tiny.ports[0].break_off()
        held.go.set()
        await tiny.until(lambda: len(tiny.jobs(COMPLETED)) == 4)
    assert held.runs == 4


async def test_unconfirmed_settles_are_repeated_and_count_once(tiny, held):
    """The answer to a settle may be lost with the connection."""
    tiny.push("q", b"")
    held.go.set()
    async with working(held):
        tiny.ports[0].keeps_confirms = True
        await tiny.until(lambda: tiny.jobs(COMPLETED))
        tiny.ports[0].break_off()
        port = await moved(tiny)
        await tiny.until(lambda: any(frame.settles for frame in port.frames))
    assert (held.runs, held.stats.done, held.stats.lost) == (1, 1, 0)


async def test_leases_that_never_arrived_go_to_somebody_else(tiny, held):
    """They were handed out in a frame that broke with its stream."""
    held.go.set()
    async with working(held):
        (id_,) = tiny.push("q", b"")
        await tiny.until(lambda: tiny.jobs(COMPLETED))
        tiny.ports[0].break_off()
        lost = tiny.store.jobs[id_]
        lost.state, lost.delivery, lost.holder = ACTIVE, 7, tiny.ports[0].session
        await moved(tiny)
        await tiny.until(lambda: lost.state == COMPLETED)
    assert lost.releases == [pb.RELEASE_REASON_INTERRUPTED]


async def test_a_silent_server_is_left(tiny, held):
    """Three heartbeats without a word: another channel."""
    tiny.heartbeat = 0.1
    async with working(held):
        calls = tiny.calls["Stream"]
        tiny.is_silent = True
        await tiny.until(lambda: tiny.calls["Stream"] > calls)
        tiny.is_silent = False
        tiny.push("q", b"")
        held.go.set()
        await tiny.until(lambda: tiny.jobs(COMPLETED))


async def test_a_handler_that_blocks_its_loop_keeps_its_lease(tiny):
    """Heartbeats come from threads of their own."""
    tiny.heartbeat = 0.1
    (id_,) = tiny.push("q", b"")
    async with program(WAITS_FOR_A_LINE, tiny.address) as process:
        assert await process.stdout.readline() == b"started\n"
        heard = tiny.frames_heard
        await tiny.until(lambda: tiny.frames_heard >= heard + 5)
        process.stdin.write(b"go on\n")
        await tiny.until(lambda: tiny.jobs(COMPLETED))
    assert tiny.store.jobs[id_].delivery == 1


async def test_a_job_with_a_short_lease_keeps_it(tiny, held):
    """However seldom the server wants to hear of the stream itself."""
    (id_,) = tiny.push("q", b"")
    tiny.store.jobs[id_].lease_ms = 90
    async with working(held):
        await held.started.wait()
        heard = tiny.frames_heard
        await tiny.until(lambda: tiny.frames_heard >= heard + 3)
        held.go.set()
        await tiny.until(lambda: tiny.jobs(COMPLETED))


async def test_a_stream_that_is_asked_to_move_takes_its_leases_along(tiny, held):
    """No delay: another stream of the same server, at once."""
    tiny.push("q", b"")
    async with working(held):
        await held.started.wait()
        tiny.ports[0].say(goaway(0))
        await moved(tiny)
        held.go.set()
        await tiny.until(lambda: tiny.jobs(COMPLETED))
    assert (held.runs, held.stats.lost) == (1, 0)


async def test_a_server_that_sends_each_stream_away_is_asked_with_pauses(tiny, held):
    """Of 0.1, 0.2, 0.4 and 0.8 s at most, each drawn from its upper half."""
    tiny.greeting = goaway(0)
    began = time.monotonic()
    async with working(held):
        await tiny.until(lambda: tiny.calls["Stream"] == 5)
        assert time.monotonic() - began >= 0.75
        tiny.greeting = None
        tiny.push("q", b"")
        await held.started.wait()
        held.go.set()
        await tiny.until(lambda: tiny.jobs(COMPLETED))


async def test_a_server_that_leaves_is_told_how_everything_ended(tiny, held):
    """With a delay: what runs is settled first, then the worker moves."""
    tiny.push("q", b"")
    async with working(held):
        await held.started.wait()
        held.started.clear()
        tiny.ports[0].say(goaway(50))
        tiny.push("q", b"")
        await held.started.wait()  # what came behind the goaway is here, so it has been heard
        assert tiny.calls["Stream"] == 1
        held.go.set()
        await tiny.until(lambda: len(tiny.jobs(COMPLETED)) == 2)
        await moved(tiny)
        tiny.push("q", b"")
        await tiny.until(lambda: len(tiny.jobs(COMPLETED)) == 3)
    assert held.stats.done == 3


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, InvalidArgument),
        (grpc.StatusCode.PERMISSION_DENIED, PermissionDenied),
    ],
)
async def test_a_stream_that_can_never_open_ends_the_worker(tiny, held, code, kind):
    """No second try would change the answer."""
    tiny.refuse("Stream", code, "never")
    with pytest.raises(kind, match="never"):
        await held.serve()
    assert tiny.calls["Stream"] == 1


async def test_a_server_that_is_not_there_yet_is_waited_for(tiny):
    """Workers may start before their server."""
    address = tiny.address
    await tiny.stop()
    worker = Worker(address)

    @worker.handler("q")
    async def handle(payload):
        return None

    serving = asyncio.create_task(worker.serve())
    late = TinyServer()
    await late.start(port=int(address.rpartition(":")[2]))
    await worker.wait_connected()
    late.push("q", b"")
    await late.until(lambda: late.jobs(COMPLETED))
    worker.stop()
    await serving
    await late.stop()


async def test_what_the_server_refuses_is_not_said_for_ever(tiny, held):
    """A settle it cannot accept would break every stream; the job is given back instead."""
    (id_,) = tiny.push("q", b"")
    async with working(held):
        await held.started.wait()
        port = tiny.ports[0]
        port.refuses_settles = True
        held.go.set()
        await moved(tiny)
        await tiny.until(lambda: tiny.jobs(COMPLETED))
    assert tiny.store.jobs[id_].releases == [pb.RELEASE_REASON_INTERRUPTED]
    assert held.runs == 2


async def test_a_worker_runs_once(tiny, held):
    """Its session is over; make another one."""
    async with working(held):
        with pytest.raises(ClientClosed, match="runs once"):
            await held.serve()
        with pytest.raises(InvalidArgument, match="before the worker starts"):
            held.handler("r")(print)
    assert tiny.jobs(READY) == []


async def test_a_stream_that_cannot_be_made_leaves_no_channel_behind(tiny, held, monkeypatch):
    """What a library raises ends the worker, and closes what was opened for it."""
    closed = []

    class Channel:
        def stream_stream(self, *_arguments, **_more):
            raise RuntimeError("no more threads")

        unary_unary = unary_stream = lambda *_arguments, **_more: None

        def close(self):
            closed.append(self)

    monkeypatch.setattr("jobline._worker.stream.open_channel", lambda *_, **__: Channel())
    with pytest.raises(Internal, match="no more threads"):
        await held.serve()
    assert len(closed) == 1


async def test_a_bug_while_frames_are_written_ends_the_worker(tiny, monkeypatch):
    """GRPC tells the reader that nobody answered, and the worker would try again for ever."""

    def broken(_desk, _wakeup):
        raise RuntimeError("a bug")

    monkeypatch.setattr(SharedSession, "frames_to_send", broken)
    worker = Worker(tiny.address)
    worker.handler("q")(lambda _payload: None)
    with pytest.raises(Internal, match="the stream's thread broke: a bug"):
        await asyncio.wait_for(worker.serve(), 10)
