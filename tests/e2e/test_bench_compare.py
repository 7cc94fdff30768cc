"""The comparison with another commit, once with servers: this tree beside itself, one small row."""

from __future__ import annotations

import os
import shutil
from contextlib import asynccontextmanager

import pytest

from benchmarks import bodies
from benchmarks.bench import Bench
from benchmarks.compare.pairs import Side, compare_row
from benchmarks.compare.rows import Row, metered
from benchmarks.compare.trees import this_tree
from benchmarks.figures import Unit

CALLS = 20

pytestmark = pytest.mark.skipif(
    0 not in os.sched_getaffinity(0) or not shutil.which("taskset"),
    reason="the server of a benchmark runs on core 0",
)


@asynccontextmanager
async def one_job_a_call(bench: Bench):
    async with bench.server("grpcio") as server:

        async def load() -> float:
            before = (await server.wire.stats()).pushed_total
            for _ in range(CALLS):
                await server.wire.push(bodies.plain(1))
            await server.wire.expect_pushed(before, CALLS)
            return CALLS

        yield lambda: metered(server, CALLS, load)


async def test_row_is_measured_on_two_servers(tmp_path):
    """Both answer, and both figures are there; flags that a server does not know are left out."""
    tree = this_tree()
    flags = tree.flags - {"--drain-seconds"}
    assert "--transport" in flags

    def side(name: str) -> Side:
        (tmp_path / name).mkdir()
        bench = Bench(tmp_path / name, True, 0.0, lambda _figure: None, flags=flags)
        return Side(name, bench)

    row = Row("P5", "one job a call", Unit.CALLS, one_job_a_call)
    outcome = await compare_row(row, side("here"), side("there"), 2)
    assert outcome.comparison.figure.median == 1.0
    assert outcome.comparison.processor is not None
