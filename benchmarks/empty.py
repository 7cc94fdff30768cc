"""The floor: a server on the same transport whose handlers take the same bytes and send the same
bytes back, and do nothing.

    python -m benchmarks.empty --transport native [--parse]

What the real server adds to this is what it is held against. `Count` tells how many calls came, so
that a floor that measured nothing fails like everything else.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

import grpc
import uvloop

from benchmarks import bodies
from jobline.v1 import job_service_pb2
from jobline_server import memory, scheduling
from jobline_server.rpc.admission import Admission
from jobline_server.rpc.transport import TransportName, serve

COUNT = "/bench.Empty/Count"
MESSAGE_BYTES_MAX = 64 << 20
# Jobs of a reply to a pull, and of a frame.
HANDED = 1_000
# In runs, and row by row.
KINDS = (True, False)


def handlers(parse: bool) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
    """All methods by path."""
    calls = 0

    async def push(_raw: bytes, _context: object) -> bytes:
        nonlocal calls
        calls += 1
        return b""

    async def parsed_push(raw: bytes, _context: object) -> bytes:
        nonlocal calls
        calls += 1
        job_service_pb2.PushRequest.FromString(raw)
        return b""

    async def count(_raw: bytes, _context: object) -> bytes:
        return str(calls).encode()

    taken = parsed_push if parse else push
    return {
        bodies.PUSH: grpc.unary_unary_rpc_method_handler(taken),
        **handing_out(),
        COUNT: grpc.unary_unary_rpc_method_handler(count),
    }


def handing_out() -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
    """Methods that hand out jobs which are not there: the same bytes each time, made before."""
    pulled = {bodies.pull(HANDED, runs=runs): bodies.pulled(HANDED, runs=runs) for runs in KINDS}
    frames = {runs: bodies.delivered(HANDED, runs=runs) for runs in KINDS}

    async def pull(raw: bytes, _context: object) -> bytes:
        return pulled[raw]

    async def ack(_raw: bytes, _context: object) -> bytes:
        return b""

    async def stream(requests: AsyncIterator[bytes], _context: object) -> AsyncIterator[bytes]:
        """Fills the window, then answers each settle with its confirm and as many jobs."""
        seq = 0
        frame = b""
        async for raw in requests:
            if seq:
                # Messages that are written one after the other are one message.
                yield bodies.confirm(seq) + frame
            else:
                opened = job_service_pb2.StreamRequest.FromString(raw)
                frame = frames[opened.open.accepts_runs]
                for _ in range(opened.window.max_in_flight // HANDED):
                    yield frame
            seq += 1

    return {
        bodies.PULL: grpc.unary_unary_rpc_method_handler(pull),
        bodies.ACK: grpc.unary_unary_rpc_method_handler(ack),
        bodies.STREAM: grpc.stream_stream_rpc_method_handler(stream),
    }


async def run(transport: TransportName, parse: bool) -> None:
    """Serves until SIGTERM."""
    memory.tune()
    scheduling.run_threads_in_batches()
    serving = await serve(
        transport,
        handlers(parse),
        ["127.0.0.1:0"],
        payload_bytes_max=MESSAGE_BYTES_MAX,
        admission=Admission(),
    )
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    memory.freeze()
    scheduling.favour_loop()
    sys.stdout.write(json.dumps({"grpc": serving.addresses[0]}) + "\n")
    sys.stdout.flush()
    await stopped.wait()
    await serving.stop(0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transport", required=True)
    parser.add_argument("--parse", action="store_true")
    chosen = parser.parse_args()
    uvloop.run(run(chosen.transport, chosen.parse))
