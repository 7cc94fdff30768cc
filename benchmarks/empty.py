"""The floor: a server on the same transport whose handler takes the bytes and answers nothing.

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
from typing import Any

import grpc
import uvloop

from benchmarks.bodies import PUSH
from jobline.v1 import job_service_pb2
from jobline_server import memory
from jobline_server.rpc.transport import TransportName, serve

COUNT = "/bench.Empty/Count"
MESSAGE_BYTES_MAX = 64 << 20


def handlers(parse: bool) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
    """Both methods by path."""
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
        PUSH: grpc.unary_unary_rpc_method_handler(taken),
        COUNT: grpc.unary_unary_rpc_method_handler(count),
    }


async def run(transport: TransportName, parse: bool) -> None:
    """Serves until SIGTERM."""
    memory.tune()
    serving = await serve(
        transport, handlers(parse), ["127.0.0.1:0"], payload_bytes_max=MESSAGE_BYTES_MAX
    )
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    memory.freeze()
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
