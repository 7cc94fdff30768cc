"""What no test reaches: per room its share of lines and branches, and the places that are missing.

`make coverage` and `make test-rooms` run tests first; this reads what they left. It ends with 1 if
a room that has a bound in `pyproject.toml` (`tool.jobline.coverage`) is below it, or not measured.
"""

from __future__ import annotations

import json
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coverage import Coverage

ROOT = Path(__file__).parents[1]
PACKAGE = "service/jobline_server/"


def measured() -> dict[str, dict[str, Any]]:
    """Files by name below the package, with what coverage found."""
    coverage = Coverage(config_file=str(ROOT / "pyproject.toml"))
    coverage.load()
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "coverage.json"
        coverage.json_report(outfile=str(report))
        files = json.loads(report.read_text())["files"]
    return {name.removeprefix(PACKAGE): found for name, found in sorted(files.items())}


def share(files: list[dict[str, Any]]) -> float:
    """Lines and branches that were reached, in per cent of all."""
    there = reached = 0
    for summary in (file["summary"] for file in files):
        there += summary["num_statements"] + summary["num_branches"]
        reached += summary["covered_lines"] + summary["covered_branches"]
    return 100 * reached / there if there else 0.0


def missing(file: dict[str, Any]) -> str:
    """Lines, and branches as from→to, that no test reaches."""
    lines = set(file["missing_lines"])
    branches = [
        f"{start}→{end if end > 0 else 'exit'}"
        for start, end in file["missing_branches"]
        if start not in lines and end not in lines
    ]
    return ", ".join([*_runs(sorted(lines)), *branches])


def _runs(lines: list[int]) -> Iterator[str]:
    """Neighbouring lines as first-last."""
    first = last = 0
    for line in [*lines, 0]:
        if line == last + 1 and first:
            last = line
            continue
        if first:
            yield f"{first}-{last}" if last > first else str(first)
        first = last = line


def main() -> int:
    """Prints the table; returns the exit code."""
    files = measured()
    bounds = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["jobline"]["coverage"]
    below = []
    for room in sorted({name.partition("/")[0] for name in files} | bounds.keys()):
        of_room = {name: file for name, file in files.items() if name.startswith(f"{room}/")}
        reached = share(list(of_room.values()))
        bound = bounds.get(room)
        print(f"{room:10} {reached:6.2f} %" + (f"  (at least {bound} %)" if bound else ""))
        for name, file in of_room.items():
            if places := missing(file):
                print(f"    {name}: {places}")
        if bound and reached < bound:
            below.append(room)
    if below:
        print(f"below what pyproject.toml asks: {', '.join(below)}", file=sys.stderr)
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
