"""`python -m benchmarks.peers`: which rows are measured, and what is done with them.

Ends with 0 if each row was measured or its peer cannot be built here, which the table says; with 1
if something that was built could not be measured.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Sequence

from rich.console import Console

from benchmarks import machine, report
from benchmarks.peers import beanstalkd, bunqueue, jobline, nats, redis, river, table
from benchmarks.peers.building import build
from benchmarks.peers.measuring import QUICK, WHOLE, Measuring
from benchmarks.peers.peer import CannotBuild, CannotMeasure, Peer, Row
from benchmarks.peers.results import Results
from benchmarks.peers.serving import end_servers_when_ended
from benchmarks.processes import pin_load

PEERS = [
    jobline.PEER,
    nats.PEER,
    river.PEER,
    redis.ASYNQ,
    redis.BULLMQ,
    beanstalkd.PEER,
    bunqueue.PEER,
]
# On the disk of the checkout: /tmp may be memory, and fsync nothing.
DIRECTORY = report.ROOT / ".bench-peers"
NOT_BUILT = "could not be built: "


def main() -> int:
    """Reads the command line; returns the exit code."""
    arguments = _arguments()
    console = Console(width=None if sys.stdout.isatty() else 200)
    try:
        peers = chosen(arguments.only)
        machine.check_cores()
    except (ValueError, machine.TooFewCores) as error:
        console.print(f"[red]{error}[/red]")
        return 1
    end_servers_when_ended()
    pin_load()
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    around = machine.look(DIRECTORY)
    report.show(console, around)
    rows = _run(peers, arguments, console)
    console.print(table.shown(rows))
    if any(row.failed and not row.failed.startswith(NOT_BUILT) for row in rows):
        return 1
    if arguments.write:
        table.write(rows, around)
        console.print(f"written: {report.DOCS.relative_to(report.ROOT)}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    names = ",".join(peer.name for peer in PEERS)
    parser.add_argument("--only", metavar="nats,river", default="", help=f"Some of {names}.")
    parser.add_argument("--quick", action="store_true", help="A few seconds a row, and rough.")
    parser.add_argument("--write", action="store_true", help="Keep the table in docs.")
    arguments = parser.parse_args()
    if arguments.write and (arguments.quick or arguments.only):
        parser.error("--write keeps a whole run: no --quick, no --only")
    return arguments


def chosen(words: str) -> list[Peer]:
    """Peers by their names; none named: all. Raises `ValueError` for a name that there is not."""
    names = [word.strip() for word in words.split(",") if word.strip()]
    known = {peer.name: peer for peer in PEERS}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"no peer {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in names] or PEERS


def _run(peers: Sequence[Peer], arguments: argparse.Namespace, console: Console) -> list[Row]:
    def tell(line: str) -> None:
        console.print(line, highlight=False)

    scale = QUICK if arguments.quick else WHOLE
    data = DIRECTORY / "data"
    # What an interrupted run left.
    shutil.rmtree(data, ignore_errors=True)
    measuring = Measuring(data, scale, tell)
    results = Results(DIRECTORY / "rows", "quick" if arguments.quick else "whole", time.time())
    kept = results.begin([setup.key for peer in peers for setup in peer.setups])
    if kept:
        tell(f"A run that was interrupted goes on: {len(kept)} rows are there already.")
    rows = [row for peer in peers for row in rows_of(peer, measuring, results, kept)]
    shutil.rmtree(data, ignore_errors=True)
    return rows


def rows_of(peer: Peer, measuring: Measuring, results: Results, kept: dict[str, Row]) -> list[Row]:
    """Builds a peer, and measures those of its rows that are not kept."""
    rows = [kept.get(setup.key) or Row.of(setup) for setup in peer.setups]
    missing = [(setup, row) for setup, row in zip(peer.setups, rows, strict=True) if not row.rates]
    try:
        if missing:
            build(peer.tools)
            version = peer.version()
    except CannotBuild as error:
        for _, row in missing:
            row.failed = f"{NOT_BUILT}{error}"
        measuring.tell(f"{peer.name} {NOT_BUILT}{error}")
        return rows
    for setup, row in missing:
        row.version = version
        try:
            measuring.measure(setup, row)
        except CannotMeasure as error:
            row.failed = f"not measured: {error}"
            measuring.tell(f"{setup.key} {row.failed}")
        results.keep(row)
    return rows


if __name__ == "__main__":
    sys.exit(main())
