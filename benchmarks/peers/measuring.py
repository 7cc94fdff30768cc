"""The loads of one row: a fresh server for the figures, and another one under strace."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from benchmarks.peers import syncs
from benchmarks.peers.peer import CannotMeasure, Load, Row, Setup
from benchmarks.peers.serving import end_group, free_port, last_line, served
from benchmarks.processes import LOAD_CORE

# Longer than the program itself allows.
LOAD_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Scale:
    """How long each push is measured, how often each thing, and which share of a drain's jobs."""

    seconds: float
    repeats: int
    share: float


WHOLE = Scale(seconds=2.0, repeats=2, share=1.0)
QUICK = Scale(seconds=0.3, repeats=1, share=0.05)


@dataclass(slots=True)
class Measuring:
    """Measures rows. Servers have their files below `directory`; `tell` hears each figure."""

    directory: Path
    scale: Scale
    tell: Callable[[str], None]
    _numbers: count[int] = field(default_factory=count, repr=False)

    def measure(self, setup: Setup, row: Row) -> None:
        """Fills a row. Raises `CannotMeasure`."""
        with self._fresh() as data, served(setup.serve(data, free_port()), data) as port:
            for load in setup.loads:
                rate = max(
                    self._rate(setup, port, load, turn) for turn in range(self.scale.repeats)
                )
                row.rates[load] = rate
                self.tell(f"{setup.system}, {setup.durability}: {load} {rate:,.0f}/s")
        row.syncs = self._syncs(setup)
        seen = "not counted" if row.syncs is None else f"{row.syncs:.2f}"
        self.tell(f"{setup.system}, {setup.durability}: syncs a push {seen}")

    def _rate(self, setup: Setup, port: int, load: Load, turn: int) -> float:
        words = ["-load", load, "-queue", f"{load}{turn}"]
        if load is Load.DRAIN:
            words += ["-jobs", str(self.drained(setup))]
        else:
            words += ["-seconds", str(self.scale.seconds)]
        jobs, seconds = run_load([*setup.load(port), *words])
        return jobs / seconds

    def drained(self, setup: Setup) -> int:
        """How many jobs a drain has: a round number of calls of a thousand."""
        return max(1_000, round(setup.drained * self.scale.share / 1_000) * 1_000)

    def _syncs(self, setup: Setup) -> float | None:
        """Syncs a push, counted on a server of its own: strace makes each of its calls slow."""
        with self._fresh() as data:
            log = data.parent / f"{data.name}.strace"
            log.touch()
            command = setup.serve(data, free_port())
            if command.user is not None:
                shutil.chown(log, command.user)
            traced = syncs.words(log)
            if not traced:
                return None
            single = ["-load", Load.SINGLE, "-queue", "traced", "-jobs"]
            with served(command, data, traced) as port:
                # The first push makes files and connections.
                run_load([*setup.load(port), *single, "1"])
                before = syncs.count_in(log)
                run_load([*setup.load(port), *single, str(syncs.PUSHES)], held=1)
                return (syncs.count_in(log) - before) / syncs.PUSHES

    @contextmanager
    def _fresh(self) -> Iterator[Path]:
        """A directory of a server's own, which is gone afterwards unless something failed."""
        data = self.directory / f"data-{next(self._numbers)}"
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir(parents=True)
        try:
            yield data
        finally:
            shutil.rmtree(data, ignore_errors=True)


def run_load(words: list[str], held: int = 0) -> tuple[int, float]:
    """Runs a load; returns its jobs and its seconds. `held` are jobs that were in its queue before.
    Raises `CannotMeasure` if it failed, or if the server does not have what the load says.
    """
    process = subprocess.Popen(
        ["taskset", "-c", str(LOAD_CORE), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=os.environ | {"NODE_ENV": "production"},
    )
    try:
        out, said = process.communicate(timeout=LOAD_SECONDS)
    except subprocess.TimeoutExpired:
        raise CannotMeasure(f"a load did not end: {' '.join(words)}") from None
    finally:
        end_group(process)
    if process.returncode:
        raise CannotMeasure(f"a load failed: {last_line(said.decode(errors='replace'))}")
    return counted(out.decode(), held)


def counted(line: str, held: int = 0) -> tuple[int, float]:
    """Jobs and seconds of a load's report. Raises `CannotMeasure` if the server has other jobs."""
    report = json.loads(last_line(line))
    jobs, seconds, seen = int(report["jobs"]), float(report["seconds"]), int(report["counted"])
    if seen - held != jobs or jobs == 0:
        raise CannotMeasure(f"the load says {jobs:,} jobs, and the server {seen - held:,}")
    return jobs, seconds
