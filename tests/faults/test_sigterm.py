"""SIGTERM to a worker at random moments: G21. Its handlers are async, plain, in batches and in
processes, and acks are in flight. SIGTERM_ROUNDS=50 kills it fifty times; a test run three times.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from jobline import AsyncClient, JobState
from jobline_server.testing import ServerProcess

ROUNDS = int(os.environ.get("SIGTERM_ROUNDS", "3"))
JOBS_A_ROUND = 100
QUEUES = ("async", "plain", "batch", "child")

PROGRAM = '''
import asyncio, os, random, sys, time
from jobline import BatchItem, Worker

address, log = sys.argv[1:]


def note(job_id):
    """One write, so that no line is torn."""
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, b"%d\\n" % job_id)
    os.close(file)


def child(payload, context):
    note(context.id)
    time.sleep(random.random() / 50)
    return context.id


async def main():
    worker = Worker(address, concurrency=4, threads=4)
    other = Worker(address, processes=2)
    other.handler("child")(child)

    @worker.handler("async")
    async def handle(payload, context):
        note(context.id)
        await asyncio.sleep(random.random() / 50)

    @worker.handler("plain")
    def plain(payload, context):
        child(payload, context)

    @worker.batch_handler("batch", size=5, wait=0.01)
    def batch(items):
        for item in items:
            note(item.id)
        time.sleep(random.random() / 50)
        return [None] * len(items)

    import signal
    def stop():
        worker.stop()
        other.stop()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    print("up", flush=True)
    await asyncio.gather(worker.serve(), other.serve())


if __name__ == "__main__":
    asyncio.run(main())
'''


@pytest.mark.fault
@pytest.mark.timeout(60 + 15 * ROUNDS)
async def test_g21_sigterm_at_any_moment_costs_no_job_anything(tmp_path: Path) -> None:
    """Each job runs once, with its first attempt and without a stall, however often its workers
    are told to stop.
    """
    program, log = tmp_path / "program.py", tmp_path / "runs"
    program.write_text(PROGRAM, encoding="utf-8")
    pushed: list[int] = []
    async with (
        ServerProcess(tmp_path / "data") as server,
        AsyncClient(server.address, timeout=300) as client,
    ):
        for _ in range(ROUNDS):
            for queue in QUEUES:
                jobs = await client.push_many(queue, [b""] * (JOBS_A_ROUND // 4), max_attempts=1)
                pushed += [job.id for job in jobs]
            await one_life(program, server.address, log)
        last = asyncio.create_task(one_life(program, server.address, log, lasts=True))
        ends = {end.id: end.state async for end in client.wait(*pushed, timeout=600)}
        last.cancel()
        await asyncio.gather(last, return_exceptions=True)
        found = [job async for job in client.jobs.list()]
    dead = [(job.queue, job.reason, job.error) for job in found if job.state is JobState.DEAD]
    assert dead == []
    assert set(ends.values()) == {JobState.COMPLETED}
    assert len(ends) == len(pushed)
    runs = Counter(map(int, log.read_text(encoding="utf-8").split()))
    assert {job_id: count for job_id, count in runs.items() if count > 1} == {}
    assert [(job.id, job.failed, job.stalls) for job in found if job.failed or job.stalls] == []
    released = sum(job.releases for job in found)
    print(f"{ROUNDS} SIGTERMs, {len(pushed)} jobs, {released} released, each run once")


async def one_life(program: Path, address: str, log: Path, *, lasts: bool = False) -> None:
    """Runs the workers, for up to a second or until it is cancelled, and has them drain."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(program), address, str(log), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"up\n"
        await asyncio.sleep(3600 if lasts else random.uniform(0.0, 1.5))
    finally:
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
