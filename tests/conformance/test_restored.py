"""A restore on an empty machine, from the last backup of a server that was lost under load: every
job up to the backup is there, and the vectors hold on the restored server as on any other."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from jobline import AsyncClient, Job, JoblineError, JobState
from jobline_server.testing import ServerProcess
from tests.backing_up import all_jobs, as_kept, backed_up, fill
from tests.conformance.conftest import AT_ONCE
from tests.conformance.runner import Servers, run_vector
from tests.conformance.servers import MAIN, SMALL
from tests.conformance.vectors import load

pytestmark = pytest.mark.fault

# Each pushes into queues of all shards in turn, one call after the other.
PRODUCERS = 4
QUEUES = 8
# So many calls of each producer are answered before the backup is asked for.
CALLS_BEFORE = 40
PAYLOAD = b"x" * 200


class Producer:
    """What one producer was told, in order: `(ids, False)` for pushed jobs, `(ids, True)` for
    acked ones. What a server had done at any moment is a beginning of it.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._queues = [f"load-{number}-{queue}" for queue in range(QUEUES)]
        self.answered: list[tuple[list[int], bool]] = []
        self.at_backup = 0

    async def work(self, client: AsyncClient) -> None:
        """Pushes, pulls and acks until the server is gone."""
        try:
            for turn in count():
                queue = self._queues[turn % QUEUES]
                pushed = await client.push_many(queue, [PAYLOAD] * 10)
                self.answered.append(([one.id for one in pushed], False))
                jobs = await client.pull(queue, max_jobs=4, wait=0)
                await client.ack(*jobs)
                self.answered.append(([job.id for job in jobs], True))
        except JoblineError:
            return

    def ids(self) -> set[int]:
        """All jobs whose push was answered."""
        return {job_id for ids, is_ack in self.answered if not is_ack for job_id in ids}

    def kept_calls(self, found: dict[int, Job]) -> list[bool]:
        """Whether a restored server has each call, of all of its jobs."""
        return [_has(found, ids, is_ack=is_ack) for ids, is_ack in self.answered]

    def queues(self) -> frozenset[str]:
        """Its own queues."""
        return frozenset(self._queues)


def _has(found: dict[int, Job], ids: Sequence[int], *, is_ack: bool) -> bool:
    jobs = [found[one] for one in ids if one in found]
    if len(jobs) < len(ids):
        return False
    return all(
        job.state is JobState.COMPLETED if is_ack else job.payload == PAYLOAD for job in jobs
    )


async def _lost_under_load(data: Path, to: Path) -> tuple[list[Producer], dict[int, Job]]:
    """Makes a backup of a busy server, and kills it a moment later; returns what the producers
    were told, and the jobs that nobody touched meanwhile.
    """
    producers = [Producer(number) for number in range(PRODUCERS)]
    server = ServerProcess(data, backup_to=to, checkpoint_journal_bytes="256KiB")
    async with server, AsyncClient(server.address, timeout=5) as client:
        await fill(client)
        quiet = await all_jobs(client)
        tasks = [asyncio.create_task(one.work(client)) for one in producers]
        while min(len(one.answered) for one in producers) < CALLS_BEFORE:  # noqa: ASYNC110  # see `load`
            await asyncio.sleep(0.01)
        for one in producers:
            one.at_backup = len(one.answered)
        await backed_up(client)
        await server.kill()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    return producers, quiet


async def _restored(to: Path, data: Path) -> None:
    """Runs the command that an operator would."""
    words = [sys.executable, "-m", "jobline.cli", "restore", str(to), str(data)]
    process = await asyncio.create_subprocess_exec(
        *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()


def _check_producers(producers: Sequence[Producer], found: dict[int, Job]) -> None:
    for one in producers:
        kept = one.kept_calls(found)
        assert kept == sorted(kept, reverse=True), "a later call is there without an earlier one"
        assert all(kept[: one.at_backup]), "it was answered before the backup was begun"
        # Only the call under way at the moment of the copy has no answer that is among these.
        here = {job.id for job in found.values() if job.queue in one.queues()}
        assert here <= one.ids()


def _failed_vectors(servers: Servers) -> Iterator[str]:
    vectors: list[dict[str, Any]] = load()
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="vector") as pool:
        runs = [(one["name"], pool.submit(run_vector, one, servers)) for one in vectors]
    for name, run in runs:
        error = run.exception()
        if error is not None:
            yield f"{name}: {error}"


@pytest.mark.timeout(300)
async def test_restored_machine_has_every_job_up_to_the_backup_and_passes_the_vectors(
    tmp_path: Path,
) -> None:
    """Given a server under load that is lost after a backup; when it is restored elsewhere; then
    what it had done at one moment behind the begin of the backup is there, all of it and nothing
    else, and every vector holds, also those about limits, on another restored server."""
    producers, quiet = await _lost_under_load(tmp_path / "lost", tmp_path / "to")
    await _restored(tmp_path / "to", tmp_path / "new")
    small_to = tmp_path / "small-to"
    lost = ServerProcess(tmp_path / "lost-small", backup_to=small_to)
    async with lost, AsyncClient(lost.address) as client:
        await client.queues.update("mail", concurrency=5)
        await backed_up(client)
    await _restored(small_to, tmp_path / "small")

    main = ServerProcess(tmp_path / "new", **MAIN)
    small = ServerProcess(tmp_path / "small", **SMALL)
    async with main, small:
        async with AsyncClient(main.address) as client:
            found = await all_jobs(client)
        assert [as_kept(found[one]) for one in quiet] == [as_kept(job) for job in quiet.values()]
        _check_producers(producers, found)
        servers = Servers(main.address, small.address)
        assert await asyncio.to_thread(lambda: list(_failed_vectors(servers))) == []
