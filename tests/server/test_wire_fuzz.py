"""Wire fuzz: random and mutated bytes to every RPC. Never UNKNOWN or INTERNAL, never a crash."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import grpc
import pytest
from grpc import aio

from jobline.v1 import admin_service_pb2, job_service_pb2
from jobline.v1.admin_service_pb2_grpc import AdminServiceStub
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.testing import running_server
from tests.server.calling import PACKAGE, BytesChannel, all_rpcs, encoded, method_of
from tests.server.conftest import connect

ROUNDS = 120
AT_ONCE = 20
# A call that waits for something is given this long.
SECONDS = 0.3
# What grpc.aio's client says of its own write that met the end of the call.
CLIENTS_OWN = "Internal error from Core"
BUGS = {"UNKNOWN", "INTERNAL", "DATA_LOSS", "UNAVAILABLE"}

ITEM = {"id": "8796093022209", "delivery": "5"}
VALID: dict[str, dict[str, Any]] = {
    "JobService/Push": {
        "queue": "fuzz",
        "options": {"name": "n", "headers": {"a": "b"}, "lease": "5s", "priority": -3},
        "jobs": [{"text": "t", "jobKey": "k", "delay": "1s", "options": {"maxAttempts": 2}}],
        "payloads": ["YQ==", "Yg=="],
        "ackLevel": 3,
    },
    "JobService/Pull": {"queues": [{"queue": "fuzz", "weight": 2}], "maxJobs": 3, "worker": "w"},
    "JobService/Ack": {"ids": ["1", "2"], "deliveries": ["1", "1"], "items": [ITEM]},
    "JobService/Fail": {"items": [ITEM | {"error": {"type": "E"}, "retryAfter": "1s"}]},
    "JobService/Release": {"items": [ITEM | {"delay": "1s", "why": 1}]},
    "JobService/Extend": {"items": [ITEM | {"lease": "5s", "progress": 5, "checkpoint": "YQ=="}]},
    "JobService/Stream": {
        "open": {"queues": [{"queue": "fuzz"}], "worker": {"id": "w"}},
        "settles": [{"seq": "1", "ackIds": ["1"], "ackDeliveries": ["1"]}],
        "window": {"maxInFlight": 5},
    },
    "JobService/Wait": {"ids": ["1", "8796093022209"], "timeout": "1s"},
    "JobService/Watch": {"queues": ["fuzz"], "kinds": [1], "resumeToken": "0.0.0.0.0.0.0.0"},
    "JobAdminService/GetJob": {"id": "8796093022209"},
    "JobAdminService/ListJobs": {"filter": {"queue": "fuzz", "states": [3]}, "pageSize": 5},
    "JobAdminService/ExplainJob": {"id": "8796093022209"},
    "QueueService/UpdateQueue": {
        "queue": "fuzz",
        "settings": {"lease": "5s", "maxWaiting": "10000", "retention": {"count": "5"}},
        "updateMask": "lease,maxWaiting",
    },
    "QueueService/ListQueues": {"namePrefix": "f", "pageSize": 5},
    "QueueService/CleanQueue": {"queue": "fuzz", "states": [5], "olderThan": "1s"},
    "QueueService/DeleteQueue": {"queue": "fuzz", "confirmQueue": "fuzz", "force": True},
    "DeadLetterService/ListDeadJobs": {"filter": {"queue": "fuzz", "reasons": [1]}},
    "DeadLetterService/GetDeadLetterStats": {"queue": "fuzz"},
    "DeadLetterService/PurgeDeadJobs": {"filter": {"queue": "fuzz"}, "all": True},
    "AdminService/GetStats": {},
    "AdminService/ListWorkers": {"pageSize": 5, "queue": "fuzz"},
}
for _name in ("Promote", "Cancel", "Retry", "Delete"):
    VALID[f"JobAdminService/{_name}Jobs"] = {"jobs": {"filter": {"queue": "fuzz"}, "ids": []}}
for _name in ("Get", "Pause", "Resume", "Drain"):
    VALID[f"QueueService/{_name}Queue"] = {"queue": "fuzz"}


@pytest.fixture(scope="module")
async def fuzzed(transport: str) -> AsyncIterator[aio.Channel]:
    """A channel to a server that all tests of this file throw bytes at."""
    async with running_server(transport=transport) as server, connect(server.address) as channel:
        yield channel


def mutated(random: Random, good: bytes) -> bytes:
    """Bytes that are nearly a message, or nothing like one."""
    data = bytearray(good)
    kind = random.randrange(6)
    if kind == 0 or not data:
        return random.randbytes(random.randrange(40))
    place = random.randrange(len(data))
    if kind == 1:
        data[place] = random.randrange(256)
    elif kind == 2:
        data[place] ^= 1 << random.randrange(8)
    elif kind == 3:
        del data[place : place + random.randrange(1, 5)]
    elif kind == 4:
        data[place:place] = random.randbytes(random.randrange(1, 12))
    else:
        data += data[random.randrange(len(data)) :]
    return bytes(data)


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
            await channel.unary_unary(path)(message, timeout=SECONDS)
    except aio.AioRpcError as error:
        # A write that met the call's deadline; the status that came is not told any more.
        return "OK" if error.details() == CLIENTS_OWN else str(error.code().name)
    except (asyncio.InvalidStateError, aio.InternalError):
        # The stream had ended before the write: its status is not told by that.
        return "OK"
    return "OK"


@pytest.mark.parametrize("rpc", all_rpcs())
async def test_no_bytes_crash_an_rpc(fuzzed: aio.Channel, rpc: str) -> None:
    """Whatever arrives is a message or INVALID_ARGUMENT; afterwards the server works as before."""
    random = Random(rpc)
    stub = JobServiceStub(fuzzed)
    await stub.Push(job_service_pb2.PushRequest(queue="fuzz", payloads=[b"x"] * 3))
    good = encoded(rpc, VALID[rpc])

    for _ in range(ROUNDS // AT_ONCE):
        messages = [mutated(random, good) for _ in range(AT_ONCE)]
        codes = await asyncio.gather(*(code_of(fuzzed, rpc, message) for message in messages))
        found = [m.hex() for m, code in zip(messages, codes, strict=True) if code in BUGS]
        assert not found, f"{codes}: {found}"

    statistics = await AdminServiceStub(fuzzed).GetStats(admin_service_pb2.GetStatsRequest())
    assert statistics.version
    pushed = await stub.Push(job_service_pb2.PushRequest(queue="after", payloads=[b"x"]))
    assert pushed.count == 1


@pytest.mark.parametrize("seed", range(3))
async def test_no_frames_crash_a_stream(fuzzed: aio.Channel, seed: int) -> None:
    """The same for what comes after a stream was opened well."""
    random = Random(seed)
    opening = encoded("JobService/Stream", {"open": {"queues": [{"queue": "fuzz"}]}})
    good = encoded("JobService/Stream", VALID["JobService/Stream"])

    for _ in range(20):
        stream: Any = fuzzed.stream_stream(f"/{PACKAGE}.JobService/Stream")(timeout=50)
        frames = [opening, *(mutated(random, good) for _ in range(3))]
        try:
            for frame in frames:
                await stream.write(frame)
            await stream.done_writing()
            async for _ in stream:
                pass
        except (aio.AioRpcError, aio.InternalError, asyncio.InvalidStateError):
            pass  # it was refused meanwhile, and the code tells
        if await stream.details() == CLIENTS_OWN:
            continue
        code = await stream.code()
        assert code.name not in BUGS, (code, [frame.hex() for frame in frames])
        assert code is not grpc.StatusCode.DEADLINE_EXCEEDED


def test_every_rpc_is_fuzzed() -> None:
    """No RPC is forgotten."""
    assert set(VALID) == set(all_rpcs())
