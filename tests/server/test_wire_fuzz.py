"""Wire fuzz: random and mutated messages to every RPC. Never UNKNOWN or INTERNAL, never a crash,
no long step, and nothing changed by a call that was refused with a definite code.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any
from weakref import WeakSet

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from jobline.v1 import admin_service_pb2, job_admin_service_pb2, job_service_pb2
from jobline.v1.admin_service_pb2_grpc import AdminServiceStub
from jobline.v1.job_admin_service_pb2_grpc import JobAdminServiceStub
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.engine.shard import Shard
from jobline_server.rpc.guard import Guard
from jobline_server.testing import running_server
from tests.server import world
from tests.server.calling import CLIENTS_OWN, PACKAGE, BytesChannel, all_rpcs, encoded, method_of
from tests.server.conftest import TRANSPORTS, connect
from tests.server.fuzzing import Maker
from tests.server.test_bad_input import DEFINITE
from tests.server.valid_requests import VALID

# Over all RPCs and both transports, which get different ones.
MESSAGES = 20_000
MESSAGES_PER_RPC = -(-MESSAGES // (len(TRANSPORTS) * len(all_rpcs())))
AT_ONCE = 20
# Streams that are opened well, with three frames each after that.
STREAMS = 200
# Calls that wait for something: they are given this long, and so many wait together.
WAITING = {"JobService/Pull", "JobService/Stream", "JobService/Wait", "JobService/Watch"}
SECONDS = 0.3
AT_ONCE_WAITING = 100
# Every other call is answered within a second, however loaded the machine is: what is measured is
# the longest step of the loop, in the time of its own thread.
ANSWER_SECONDS = 30.0
STEP_SECONDS_MAX = 0.1
LATE = {"DEADLINE_EXCEEDED", "CANCELLED"}
BUGS = {"UNKNOWN", "INTERNAL", "DATA_LOSS", "UNAVAILABLE"}


@dataclass
class Watched:
    """What was seen while messages were thrown at a server."""

    longest_step: float = 0.0
    changed: list[str] = field(default_factory=list)
    answered: int = 0


@pytest.fixture(scope="module")
async def fuzzed(transport: str) -> AsyncIterator[aio.Channel]:
    """A channel to a server that all tests of this file throw bytes at."""
    async with running_server(transport=transport) as server, connect(server.address) as channel:
        await world.fill(channel)
        yield channel


@pytest.fixture
def young_heap() -> Iterator[None]:
    """Lets no step pay for a collection of all that the tests before this one have imported."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch, young_heap: None) -> Watched:
    """Watches every step of the loop, and every fact that a call emits before it is refused."""
    seen = Watched()
    emitted: WeakSet[asyncio.Task[Any]] = WeakSet()
    run, emit, status_of = asyncio.Handle._run, Shard.emit, Guard._status

    def timed(handle: asyncio.Handle) -> None:
        # The thread's own time: another process on a loaded machine takes none of it.
        began = time.thread_time()
        run(handle)
        seen.longest_step = max(seen.longest_step, time.thread_time() - began)

    def noted(shard: Shard, fact: Any, *, volatile: bool = False) -> None:
        emit(shard, fact, volatile=volatile)
        task = asyncio.current_task()
        if task is not None:
            emitted.add(task)

    def checked(guard: Guard, error: Exception, meter: Any) -> Any:
        status = status_of(guard, error, meter)
        seen.answered += 1
        # What a stream's earlier frames did stays done.
        is_definite = status.code.name in DEFINITE and meter.method != "Stream"
        if is_definite and asyncio.current_task() in emitted:
            seen.changed.append(f"{meter.method}: {status.message}")
        return status

    monkeypatch.setattr(asyncio.Handle, "_run", timed)
    monkeypatch.setattr(Shard, "emit", noted)
    monkeypatch.setattr(Guard, "_status", checked)
    return seen


async def known_ids(channel: aio.Channel) -> list[int]:
    """Ids and deliveries of jobs that the server has."""
    listed = await JobAdminServiceStub(channel).ListJobs(
        job_admin_service_pb2.ListJobsRequest(page_size=20)
    )
    return [number for job in listed.jobs for number in (job.id, job.delivery)]


async def code_of(channel: BytesChannel, rpc: str, message: bytes) -> str:
    """How a call ends, or OK where it goes on."""
    method, path = method_of(rpc), f"/{PACKAGE}.{rpc}"
    try:
        if method.client_streaming:
            stream = channel.stream_stream(path)(timeout=SECONDS)
            await stream.write(message)
            await stream.done_writing()
            async for _ in stream:
                pass
        elif method.server_streaming:
            async for _ in channel.unary_stream(path)(message, timeout=SECONDS):
                pass
        else:
            seconds = SECONDS if rpc in WAITING else ANSWER_SECONDS
            await channel.unary_unary(path)(message, timeout=seconds)
    except aio.AioRpcError as error:
        # A write that met the call's deadline; the status that came is not reported any more.
        return "OK" if error.details() == CLIENTS_OWN else str(error.code().name)
    except (asyncio.InvalidStateError, aio.InternalError):
        # The stream had ended before the write: this error does not have its status.
        return "OK"
    return "OK"


@pytest.mark.parametrize("rpc", all_rpcs())
async def test_no_message_crashes_an_rpc(
    fuzzed: aio.Channel, transport: str, rpc: str, watched: Watched
) -> None:
    """Whatever arrives is answered well or with a definite code, which changes nothing; no step of
    the loop is long; afterwards the server works as before.
    """
    random = Random(f"{rpc} {transport}")
    stub = JobServiceStub(fuzzed)
    await stub.Push(job_service_pb2.PushRequest(queue="fuzz", payloads=[b"x"] * 3))
    maker = Maker(random, await known_ids(fuzzed))
    good = ParseDict(VALID[rpc], GetMessageClass(method_of(rpc).input_type)())
    most = AT_ONCE_WAITING if rpc in WAITING else AT_ONCE

    for start in range(0, MESSAGES_PER_RPC, most):
        messages = [maker.fuzzed(good) for _ in range(min(most, MESSAGES_PER_RPC - start))]
        codes = await asyncio.gather(*(code_of(fuzzed, rpc, message) for message in messages))
        wrong = BUGS if rpc in WAITING else BUGS | LATE
        found = [(code, m.hex()) for m, code in zip(messages, codes, strict=True) if code in wrong]
        assert not found, found

    assert watched.answered, "nothing was ever refused"
    assert not watched.changed
    assert watched.longest_step < STEP_SECONDS_MAX
    statistics = await AdminServiceStub(fuzzed).GetStats(admin_service_pb2.GetStatsRequest())
    assert statistics.version
    pushed = await stub.Push(job_service_pb2.PushRequest(queue="after", payloads=[b"x"]))
    assert pushed.count == 1


@pytest.mark.parametrize("seed", range(STREAMS // AT_ONCE))
async def test_no_frames_crash_a_stream(fuzzed: aio.Channel, seed: int, watched: Watched) -> None:
    """The same for what comes after a stream was opened well."""
    random = Random(seed)
    await JobServiceStub(fuzzed).Push(
        job_service_pb2.PushRequest(queue="fuzz", payloads=[b"x"] * 50)
    )
    maker = Maker(random, await known_ids(fuzzed))
    opening = encoded(
        "JobService/Stream",
        {"open": {"queues": [{"queue": "fuzz"}]}, "window": {"maxInFlight": random.randrange(9)}},
    )
    later = {name: value for name, value in VALID["JobService/Stream"].items() if name != "open"}
    good = ParseDict(later, job_service_pb2.StreamRequest())
    all_frames = [[opening, *(maker.fuzzed(good) for _ in range(3))] for _ in range(AT_ONCE)]

    codes = await asyncio.gather(*(code_of_frames(fuzzed, frames) for frames in all_frames))

    wrong = BUGS | {"DEADLINE_EXCEEDED"}
    for frames, code in zip(all_frames, codes, strict=True):
        assert code not in wrong, (code, [frame.hex() for frame in frames])
    assert watched.longest_step < STEP_SECONDS_MAX


async def code_of_frames(channel: BytesChannel, frames: list[bytes]) -> str:
    """How a stream ends that sends these, or OK where that is not known."""
    stream = channel.stream_stream(f"/{PACKAGE}.JobService/Stream")(timeout=ANSWER_SECONDS)
    try:
        for frame in frames:
            await stream.write(frame)
        await stream.done_writing()
        async for _ in stream:
            pass
    except (aio.AioRpcError, aio.InternalError, asyncio.InvalidStateError):
        pass  # it was refused meanwhile, and the code tells
    if await stream.details() == CLIENTS_OWN:
        return "OK"
    return str((await stream.code()).name)


def test_every_rpc_is_fuzzed() -> None:
    """No RPC is forgotten."""
    assert set(VALID) == set(all_rpcs())
