"""`python -m benchmarks`: which benchmarks run, and what is done with their figures.

Ends with 0 when everything was measured, whether targets were met or not; with 1 when something
could not be measured.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import uvloop
from rich.console import Console

from benchmarks import (
    backups,
    blocked,
    clients,
    draining,
    due,
    encrypted,
    export_steps,
    exported,
    grouped,
    growth,
    h2load,
    idle,
    keys,
    latency,
    limited,
    limited_rows,
    machine,
    many_parents,
    operators,
    overload,
    profiling,
    pushing,
    report,
    scheduled,
    sizes,
    watchers,
    watching,
)
from benchmarks.bench import CANNOT_MEASURE, Bench
from benchmarks.figures import Figure
from benchmarks.million import running
from benchmarks.processes import pin_load

Benchmark = Callable[[Bench], Awaitable[None]]


async def _look_on(bench: Bench) -> None:
    """P15: others look on, and operators act on many jobs."""
    await watching.watch(bench)
    await watchers.crowds(bench)
    await operators.act(bench)


async def _more(bench: Bench) -> None:
    """P11: more jobs, more queues, and more groups."""
    await growth.grow(bench)
    await grouped.grow(bench)


async def _limits(bench: Bench) -> None:
    """P13: limits, and what else users turn on."""
    await limited.limit(bench)
    await limited_rows.limit_rows(bench)


async def _many(bench: Bench) -> None:
    """P12: many jobs become due at once, many have keys, and many wait for others."""
    await due.become_due(bench)
    await keys.many_keys(bench)
    await blocked.wait_for_others(bench)
    await many_parents.act_on_children(bench)


async def _history(bench: Bench) -> None:
    """P16: the history is exported meanwhile."""
    await exported.export(bench)
    await export_steps.measure(bench)


BENCHMARKS: dict[str, Benchmark] = {
    "P1": pushing.lots,
    "P2": pushing.rows,
    "P3": draining.drain,
    "P4": clients.worker,
    "P5": pushing.one_by_one,
    "P6": clients.pushers,
    "P7": latency.one_at_a_time,
    "P8": latency.until_handed_out,
    "P9": sizes.memory,
    "P10": sizes.start,
    "P11": _more,
    "P12": _many,
    "P13": _limits,
    "P14": idle.idle,
    "P15": _look_on,
    "P16": _history,
    "P17": overload.overload,
    "P18": backups.back_up,
    "TLS": encrypted.encrypt,
}
# Longer ones, which have a table of their own. By name they run with as many as the name says, for
# half an hour; a run of everything, and what is kept, has fewer, a million jobs of nine kinds
# together: some five minutes.
LONG: dict[str, Benchmark] = {
    "million": running.act_on_many,
    "schedules": scheduled.many_schedules,
}
SHORTENED: dict[str, Benchmark] = {
    "million": partial(running.act_on_many, jobs=120_000),
    "schedules": partial(scheduled.many_schedules, schedules=30_000),
}
# On the disk of the checkout: /tmp may be memory, and fsync nothing.
DIRECTORY = report.ROOT / ".bench"


def main() -> int:
    """Reads the command line; returns the exit code."""
    arguments = _arguments()
    console = Console(width=None if sys.stdout.isatty() else 200)
    try:
        chosen = choose(arguments.profile or arguments.only, is_kept=arguments.write)
        h2load.check_installed()
        machine.check_cores()
        if arguments.profile:
            profiling.check_installed()
    except (*CANNOT_MEASURE, ValueError) as error:
        console.print(f"[red]{error}[/red]")
        return 1
    pin_load()
    directory: Path = arguments.directory
    directory.mkdir(parents=True, exist_ok=True)
    return uvloop.run(_run(chosen, arguments, console, directory))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", metavar="P1,P5", default="", help="These, not all.")
    parser.add_argument("--quick", action="store_true", help="Shorter and rougher.")
    parser.add_argument("--write", action="store_true", help="Keep the figures in docs and README.")
    parser.add_argument("--profile", metavar="P1", help="Show where the server's time goes.")
    parser.add_argument(
        "--directory", type=Path, default=DIRECTORY, help="Where servers keep their files."
    )
    arguments = parser.parse_args()
    if arguments.write and (arguments.quick or arguments.profile or not is_whole(arguments.only)):
        by_name = f"--only {','.join(LONG)}"
        parser.error(f"--write keeps whole tables: no --quick, no --profile, {by_name} or none")
    return arguments


class Chosen(NamedTuple):
    """Benchmarks that are to run: those of the first table, and long ones, of the second."""

    short: Sequence[Benchmark]
    long: Sequence[Benchmark]


def choose(words: str, *, is_kept: bool = False) -> Chosen:
    """Returns benchmarks by their names; none named: all. The long ones are shortened unless they
    were named and their figures are not kept. Raises `ValueError` for a name that there is not.
    """
    names = _names(words)
    known = BENCHMARKS | LONG
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}")
    long = LONG if names and not is_kept else SHORTENED
    names = names or [*known]
    return Chosen(
        [BENCHMARKS[name] for name in names if name in BENCHMARKS],
        [long[name] for name in names if name in long],
    )


def is_whole(words: str) -> bool:
    """Returns whether each table that these benchmarks have rows of has all its rows."""
    return sorted(_names(words)) in ([], sorted(LONG))


def _names(words: str) -> list[str]:
    names = [word.strip() for word in words.split(",")]
    return [name if name in LONG else name.upper() for name in names if name]


async def _run(
    chosen: Chosen, arguments: argparse.Namespace, console: Console, directory: Path
) -> int:
    began = perf_counter()
    around = machine.look(directory)
    report.show(console, around)
    _warn_of_company(console)

    def tell(figure: Figure) -> None:
        console.print(report.line(figure), highlight=False)

    bench = Bench(
        directory=directory,
        quick=arguments.quick,
        fsync_seconds=around.fsync_p50,
        report=tell,
        profile=bool(arguments.profile),
    )
    # The load's own garbage must not be collected while it is timed.
    gc.disable()
    failed = await _measure(bench, chosen.short, console)
    short = len(bench.figures)
    failed |= await _measure(bench, chosen.long, console)
    console.print(report.table(bench.figures))
    console.print(f"{perf_counter() - began:.0f} s in all")
    shutil.rmtree(directory, ignore_errors=True)
    if failed:
        return 1
    if arguments.write:
        written: list[Path] = []
        if chosen.short:
            written += report.write(bench.figures[:short], around)
        written += report.write_long(bench.figures[short:], around, arguments.only)
        for path in dict.fromkeys(written):
            console.print(f"written: {path.relative_to(report.ROOT)}")
    return 0


async def _measure(bench: Bench, benchmarks: Sequence[Benchmark], console: Console) -> bool:
    """Runs benchmarks; returns whether one could not be measured."""
    failed = False
    for benchmark in benchmarks:
        try:
            await benchmark(bench)
        except CANNOT_MEASURE as error:
            failed = True
            console.print(f"[red]not measured: {error}[/red]")
        gc.collect()
    return failed


def _warn_of_company(console: Console) -> None:
    load = machine.load_average()
    if load > 0.5:
        console.print(f"[yellow]The machine is busy already: load average {load:.1f}.[/yellow]")


if __name__ == "__main__":
    sys.exit(main())
