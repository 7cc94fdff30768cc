"""How many events a second become tables: a simulated history, read into all of them.

    python pipeline/benchmarks/tables.py --millions 1,10

Each size runs in a process of its own, whose time includes the start of Spark. Nothing else may run
on the machine: wall time is all that is measured.
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
from pathlib import Path

# Events per job of a simulated history.
EVENTS_A_JOB = 3.05
START = "2026-11-02"
TARGETS = {1: "50,000 (20 s, cold)", 10: "300,000", 30: "400,000"}


def measured(command: list[str]) -> tuple[str, float]:
    """Runs a command; returns its output and its wall seconds."""
    begun = time.monotonic()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout, time.monotonic() - begun


def main() -> None:
    """Prints one row per size."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--millions", default="1,10")
    asked.add_argument("--memory", default="4g")
    given = asked.parse_args()
    program = str(Path(sys.executable).with_name("jobline-pipeline"))
    print(f"{os.cpu_count()} cores, load before {os.getloadavg()[0]:.1f}")
    print("| events | simulate/s | run, s | events/s | target |")
    print("|--:|--:|--:|--:|--:|")
    for millions in [int(text) for text in given.millions.split(",")]:
        scratch = Path(tempfile.mkdtemp(prefix="jobline-bench-"))
        try:
            jobs = str(round(millions * 1e6 / EVENTS_A_JOB))
            history, tables = str(scratch / "history"), str(scratch / "tables")
            _, made = measured([program, "simulate", history, "--jobs", jobs, "--start", START])
            command = [program, "run", history, "--tables", tables, "--memory", given.memory]
            said, wall = measured([*command, "--json"])
            batches = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
            events = sum(batch["rows"] for batch in batches)
            print(
                f"| {events:,} | {events / made:,.0f} | {wall:.1f} "
                f"| {events / wall:,.0f} | {TARGETS.get(millions, '')} |",
                flush=True,
            )
        finally:
            shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
