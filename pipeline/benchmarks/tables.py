"""How many events a second become tables: a simulated history, read into all of them.

    python pipeline/benchmarks/tables.py --millions 1,10,30,50

Each size runs in a process of its own, whose time includes the start of Spark. Nothing else may run
on the machine: wall time is what is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

# Events per job of a simulated history.
EVENTS_A_JOB = 3.05
START = "2026-11-02"
SIMULATED_A_SECOND = 1_000_000
# By millions of events: the most seconds, or the fewest events a second; else it has to end.
SECONDS_MAX = {1: 20.0}
EVENTS_A_SECOND = {10: 300_000, 30: 400_000}


@dataclass(frozen=True, slots=True)
class Measured:
    """One size: how many events there were, and the wall seconds of both commands."""

    millions: int
    events: int
    simulated_s: float
    tables_s: float

    def row(self) -> str:
        """Returns a row of the table that is printed."""
        simulated, made = self.events / self.simulated_s, self.events / self.tables_s
        target, reached = "it ends", True
        if self.millions in SECONDS_MAX:
            limit = SECONDS_MAX[self.millions]
            target, reached = f"≤ {limit:g} s", self.tables_s <= limit
        elif self.millions in EVENTS_A_SECOND:
            least = EVENTS_A_SECOND[self.millions]
            target, reached = f"≥ {least:,}/s", made >= least
        return (
            f"| {self.events:,} | {simulated:,.0f} | {self.tables_s:.1f} | {made:,.0f} "
            f"| {1e6 * self.tables_s / self.events:.2f} | {target} | {'yes' if reached else 'no'} |"
        )


def timed(command: list[str]) -> tuple[str, float]:
    """Runs a command; returns its output and its wall seconds."""
    begun = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed: {done.stderr[-2000:]}")
    return done.stdout, time.monotonic() - begun


def measured(millions: int, memory: str) -> Measured:
    """Makes a history up and reads it into new tables."""
    program = str(Path(sys.executable).with_name("jobline-pipeline"))
    with tempfile.TemporaryDirectory(prefix="jobline-bench-") as scratch:
        jobs = str(round(millions * 1e6 / EVENTS_A_JOB))
        history, tables = f"{scratch}/history", f"{scratch}/tables"
        _, simulated = timed([program, "simulate", history, "--jobs", jobs, "--start", START])
        command = [program, "run", history, "--tables", tables, "--memory", memory, "--json"]
        said, made = timed(command)
        batches = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        events = sum(batch["rows"] for batch in batches)
        shutil.rmtree(tables)
    return Measured(millions, events, simulated, made)


def main() -> None:
    """Prints one row per size."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--millions", default="1,10")
    asked.add_argument("--memory", default="4g")
    given = asked.parse_args()
    sizes = [int(text) for text in given.millions.split(",")]
    print(f"{os.cpu_count()} cores, load before {os.getloadavg()[0]:.1f}, heap {given.memory}")
    print(f"simulate shall make {SIMULATED_A_SECOND:,} events a second, from 10 million on\n")
    print("| events | simulated/s | tables, s | events/s | µs an event | target | reached |")
    print("|--:|--:|--:|--:|--:|:--|:--|")
    for millions in sizes:
        print(measured(millions, given.memory).row(), flush=True)


if __name__ == "__main__":
    main()
