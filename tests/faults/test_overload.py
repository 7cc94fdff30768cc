"""More calls than the server can do, from callers who do not wait: most are refused with a definite
code, and the server is what it was. How long those take that are accepted is what P17 of
`python -m benchmarks` measures.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import perf_counter

import pytest

from benchmarks import bodies
from benchmarks.bench import Running
from benchmarks.open_loop import connect
from benchmarks.overload import Load
from benchmarks.processes import ServerProcess
from benchmarks.wire import Wire
from jobline_server.rpc.limits import NATIVE_CALLS_MAX

pytestmark = [pytest.mark.fault, pytest.mark.timeout(180)]

# Twice what one core has ever served.
RATE = 60_000
SECONDS = 4.0
CONNECTIONS = 3
GROWTH_BYTES_MAX = 100 << 20
NORMAL_SECONDS = 5.0


async def test_a_flood_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    """No call is dropped, what was accepted is stored, and others are refused clearly meanwhile.

    The benchmark's part of it fails where one of these is not so.
    """
    flags = ["--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0", "--http", ""]
    process = ServerProcess("jobline_server", [*flags, "--transport", "native"], tmp_path / "log")
    process.start()
    try:
        async with Wire(process.address) as wire:
            message = bodies.plain(1)
            await wire.push(message)
            size = process.memory_bytes()
            connections = await connect(process.address, bodies.PUSH, message, CONNECTIONS)
            assert all(one.room() <= NATIVE_CALLS_MAX for one in connections)
            server = Running(process, wire, is_floor=False)
            flood, _ = await Load(server, connections, message, jobs=1).flood(RATE, SECONDS)
            grown = process.memory_bytes() - size
            assert not any(one.open for one in connections)
            for one in connections:
                one.close()
            async with asyncio.timeout(NORMAL_SECONDS):
                began = perf_counter()
                await wire.push(message)
                assert perf_counter() - began < 1
    finally:
        process.kill()
    assert flood.counted.refused > flood.calls / 10
    assert flood.counted.accepted
    assert not flood.counted.reset
    assert grown < GROWTH_BYTES_MAX
    said = (tmp_path / "log").read_text()
    assert said.count("overload: calls are refused") in range(1, 6)
