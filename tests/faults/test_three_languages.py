"""Workers in Python, Go and TypeScript on one queue, whose server is killed again and again.

Nothing that was acknowledged is lost, no job runs twice while its lease is valid, and all three
work again by themselves. The workers are programs of their own; each writes down what it did.

    MIXED_KILLS=20 pytest -m fault tests/faults/test_three_languages.py -s
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from jobline import AsyncClient, JobState
from jobline_server.testing import processes
from jobline_server.testing.processes import ServerProcess

KILLS = int(os.environ.get("MIXED_KILLS", "3"))
pytestmark = [pytest.mark.fault, pytest.mark.timeout(600 + 60 * KILLS)]

ROOT = Path(__file__).parents[2]
TYPESCRIPT = ROOT / "clients" / "typescript"
QUEUE = "mixed"
# Most jobs are short; some run through the kill, the restart and the reconnection.
SHORT_MS, LONG_MS, LONG_SHARE = 8, 1_500, 0.005
PRODUCERS, PUSH_PAUSE_SECONDS = 4, 0.01
# A handler is told within this time that its lease was lost with the server's memory of it.
TOLD_MS = 1_000
PATIENCE_SECONDS = 240.0
WAITED_AT_ONCE = 5_000


@dataclass
class Run:
    """One hand-out of one job, as its worker wrote it down; times in milliseconds, 0: never."""

    language: str
    job_id: int
    delivery: int
    begin: int = 0
    end: int = 0
    stop: int = 0


@dataclass
class Records:
    """What the workers wrote: a file for each language."""

    folder: Path
    languages: tuple[str, ...]
    kills: list[int] = field(default_factory=list)

    def path(self, language: str) -> Path:
        return self.folder / f"{language}.record"

    def ends_since(self, language: str, moment: int) -> int:
        """How many jobs that began after a moment have ended well."""
        runs = self.runs_of(language)
        return sum(1 for run in runs if run.begin > moment and run.end)

    def runs_of(self, language: str) -> list[Run]:
        runs: dict[tuple[int, int], Run] = {}
        path = self.path(language)
        for line in path.read_text().splitlines() if path.exists() else ():
            what, job_id, delivery, at = line.split()
            key = int(job_id), int(delivery)
            run = runs.setdefault(key, Run(language, *key))
            assert not getattr(run, what), f"{language}: {what} twice of {key}"
            setattr(run, what, int(at))
        return list(runs.values())

    def all(self) -> list[Run]:
        return [run for language in self.languages for run in self.runs_of(language)]


def commands(folder: Path) -> dict[str, list[str]]:
    """How each worker is started, of those languages that this machine has."""
    found = {"python": [sys.executable, str(Path(__file__).with_name("mixed_worker.py"))]}
    if shutil.which("go"):
        program = folder / "mixedworker"
        build = ["go", "build", "-o", str(program), "./internal/mixedworker"]
        subprocess.run(build, cwd=ROOT / "clients" / "go", check=True)
        found["go"] = [str(program)]
    if shutil.which("node") and (TYPESCRIPT / "node_modules" / ".bin" / "tsc").exists():
        subprocess.run(["node_modules/.bin/tsc"], cwd=TYPESCRIPT, check=True)
        found["typescript"] = ["node", str(TYPESCRIPT / "dist" / "test" / "mixed_program.js")]
    return found


@contextmanager
def working(command: list[str], address: str, record: Path) -> Iterator[None]:
    """Runs a worker for the length of the block; it must still be there at the end of it."""
    with record.with_suffix(".log").open("w") as log:
        process = subprocess.Popen([*command, address, QUEUE, str(record)], stderr=log, stdout=log)
        try:
            yield
            assert process.poll() is None, record.with_suffix(".log").read_text()[-2_000:]
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


async def until(what: str, is_so: Callable[[], bool]) -> None:
    """Looks until it is so: other processes write files, which signals nobody."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < end, f"not within {PATIENCE_SECONDS:.0f} s: {what}"
        await asyncio.sleep(0.05)


async def produce(client: AsyncClient, ids: list[int], rest: asyncio.Event) -> None:
    """Pushes one job after another, through every kill."""
    while not rest.is_set():
        is_long = random.random() < LONG_SHARE
        pushed = await client.push(QUEUE, LONG_MS if is_long else random.randint(0, SHORT_MS))
        ids.append(pushed.id)
        await asyncio.sleep(PUSH_PAUSE_SECONDS)


async def states_of(client: AsyncClient, ids: list[int]) -> Counter[JobState]:
    """How jobs ended, once they have."""
    states: Counter[JobState] = Counter()
    for start in range(0, len(ids), WAITED_AT_ONCE):
        some = ids[start : start + WAITED_AT_ONCE]
        states.update([end.state async for end in client.wait(*some, timeout=PATIENCE_SECONDS)])
    return states


def now_ms() -> int:
    return int(time.time() * 1_000)


async def all_work(records: Records, since: int) -> None:
    for language in records.languages:
        await until(
            f"{language} works after {len(records.kills)} kills",
            lambda language=language: records.ends_since(language, since) >= 5,  # type: ignore[misc]  # bound at once
        )


def overlaps(runs: list[Run], kills: list[int]) -> list[tuple[Run, Run]]:
    """Hand-outs of one job that ran at a time, though nothing had ended the first one's lease. A
    lease may end with a kill, if it was given just before: then its worker is told to stop.
    """
    by_job: defaultdict[int, list[Run]] = defaultdict(list)
    for run in runs:
        by_job[run.job_id].append(run)
    found = []
    for of_one in by_job.values():
        ordered = sorted(of_one, key=lambda run: run.delivery)
        for first, second in pairwise(ordered):
            was_killed = any(first.begin <= kill <= second.begin for kill in kills)
            over = first.end or first.stop
            ran_on = over > second.begin + (TOLD_MS if was_killed else 0)
            if second.begin < first.begin or (over and ran_on) or not (over or was_killed):
                found.append((first, second))
    return found


async def test_nothing_is_lost_or_runs_twice_when_the_server_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "READY_SECONDS", PATIENCE_SECONDS)
    programs = commands(tmp_path)
    missing = {"python", "go", "typescript"} - set(programs)
    if missing and os.environ.get("CONNECT_CLIENT") == "required":
        pytest.fail(f"no toolchain for {missing}")
    records = Records(tmp_path, tuple(programs))
    ids: list[int] = []
    rest = asyncio.Event()
    async with ServerProcess(tmp_path / "data") as server:
        with ExitStack() as workers:
            for language, command in programs.items():
                workers.enter_context(working(command, server.address, records.path(language)))
            async with AsyncClient(server.address, timeout=PATIENCE_SECONDS) as client:
                producers = [
                    asyncio.create_task(produce(client, ids, rest)) for _ in range(PRODUCERS)
                ]
                await all_work(records, 0)
                for _ in range(KILLS):
                    await asyncio.sleep(random.random() / 2)
                    records.kills.append(now_ms())
                    await server.restart()
                    await all_work(records, now_ms())
                rest.set()
                await asyncio.gather(*producers)
                states = await states_of(client, ids)
    runs = records.all()
    assert len(set(ids)) == len(ids), "an id was given twice"
    assert states == {JobState.COMPLETED: len(ids)}
    assert {run.job_id for run in runs if run.end} >= set(ids)
    assert {run.job_id for run in runs} == set(ids), "a push was stored twice"
    assert not overlaps(runs, records.kills)
    again = len(runs) - len(ids)
    shares = Counter(run.language for run in runs if run.end)
    without = f"; left out for want of a toolchain: {', '.join(sorted(missing))}" if missing else ""
    print(f"{KILLS} kills, {len(ids):,} jobs, {again} handed out again, {dict(shares)}{without}")
