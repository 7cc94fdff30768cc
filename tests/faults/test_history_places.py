"""The history of a server whose destination, or whose spool, has no room or is not there."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from jobline import AsyncClient
from jobline_server.testing import ServerProcess
from tests.faults.test_history_kills import read
from tests.small_disk import fill, mounted

pytestmark = pytest.mark.fault

MANY = 2_000
SPOOL_MIB = 1


async def metric(server: ServerProcess, name: str) -> float:
    """Returns a metric of the history."""
    async with httpx.AsyncClient() as http:
        page = (await http.get(f"http://{server.http}/metrics")).text
    found = re.search(rf"^{re.escape('jobline_history_' + name)} (\S+)$", page, re.MULTILINE)
    assert found is not None, name
    return float(found[1])


async def metric_reaches(server: ServerProcess, name: str, value: float) -> None:
    """Waits until a metric is as large as that; the server is another process."""
    async with asyncio.timeout(60):
        while await metric(server, name) < value:  # noqa: ASYNC110  # it is another process
            await asyncio.sleep(0.05)


async def work(client: AsyncClient, jobs: int = MANY) -> None:
    """Jobs are pushed and completed."""
    await client.push_payloads("q", [b"x" * 20] * jobs)
    done = 0
    while done < jobs:
        leased = await client.pull("q", max_jobs=1_000, lease=30)
        await client.ack(*leased)
        done += len(leased)


@pytest.mark.timeout(120)
async def test_a_destination_that_comes_back_gets_everything_once(tmp_path: Path) -> None:
    """It is gone for some time, in which the server is killed; the queue goes on."""
    gone = tmp_path / "gone"
    gone.write_text("no directory can be made here")
    history = gone / "history"
    server = ServerProcess(tmp_path / "data", history=history, history_seconds=1)
    async with server, AsyncClient(server.address) as client:
        await work(client)
        await metric_reaches(server, 'failures_total{step="send"}', 1)
        await server.restart()
        await work(client)
        await metric_reaches(server, "events_total", 3 * MANY)
        assert await metric(server, "spool_bytes") > 0
        assert await metric(server, "lag_seconds") > 0
        gone.unlink()
        async with asyncio.timeout(60):
            while await metric(server, "spool_bytes") > 0:  # noqa: ASYNC110  # as above
                await asyncio.sleep(0.05)
        assert await server.terminate() == 0
    events = Counter(row["event"] for row in read(history))
    assert events == {"pushed": 2 * MANY, "leased": 2 * MANY, "completed": 2 * MANY}


@pytest.fixture
def small_spool(tmp_path: Path) -> Iterator[Path]:
    """A data directory whose spool has a file system of its own, soon full."""
    with mounted(tmp_path / "data" / "history", SPOOL_MIB):
        yield tmp_path / "data"


@pytest.mark.root
@pytest.mark.timeout(120)
async def test_a_spool_without_room_loses_its_oldest_files_and_the_queue_goes_on(
    tmp_path: Path, small_spool: Path
) -> None:
    gone = tmp_path / "gone"
    gone.write_text("no directory can be made here")
    history = gone / "history"
    server = ServerProcess(
        small_spool, history=history, history_seconds=1, checkpoint_journal_bytes="64KiB"
    )
    async with server, AsyncClient(server.address) as client:
        (small_spool / "history" / "filler").write_bytes(bytes((SPOOL_MIB << 20) - (80 << 10)))
        async with asyncio.timeout(90):
            while await metric(server, "lost_files_total") < 3:
                await work(client)
        gone.unlink()
        (small_spool / "history" / "filler").unlink()
        await work(client, 7)
        assert await server.terminate() == 0
    rows = read(history)
    assert rows
    last = [row for row in rows if row["event"] == "completed"][-7:]
    assert len({row["job_id"] for row in last}) == 7


@pytest.mark.root
@pytest.mark.timeout(120)
async def test_a_destination_without_room_gets_everything_once_there_is_some(
    tmp_path: Path,
) -> None:
    """A directory on a disk of its own: the queue goes on, and each file arrives whole, once."""
    with mounted(tmp_path / "disk", 1) as disk:
        filler, history = fill(disk), disk / "history"
        server = ServerProcess(tmp_path / "data", history=history, history_seconds=1)
        async with server, AsyncClient(server.address) as client:
            await work(client)
            await metric_reaches(server, 'failures_total{step="send"}', 2)
            await work(client)
            assert await metric(server, "lost_files_total") == 0
            assert list(history.rglob(".*.tmp")) == []
            filler.unlink()
            await metric_reaches(server, "events_total", 6 * MANY)
            async with asyncio.timeout(60):
                while await metric(server, "spool_bytes") > 0:  # noqa: ASYNC110  # as above
                    await asyncio.sleep(0.05)
            log = server.log.read_text()
            assert await server.terminate() == 0
        events = Counter(row["event"] for row in read(history))
    assert events == {"pushed": 2 * MANY, "leased": 2 * MANY, "completed": 2 * MANY}
    assert log.count("the destination of the history cannot be reached") == 1
