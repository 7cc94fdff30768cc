"""`python -m benchmarks.compare REF`: this tree beside another commit.

Ends with 1 if a row is slower, or could not be measured on this tree.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import sys
from collections.abc import Sequence
from time import perf_counter

import uvloop
from rich.console import Console

from benchmarks import h2load, machine, report
from benchmarks.bench import CANNOT_MEASURE, Bench
from benchmarks.compare import clients, handouts, pushes, stored, table
from benchmarks.compare.pairs import PAIRS_MIN, NotCompared, Outcome, Side, compare_row
from benchmarks.compare.rows import Row
from benchmarks.compare.table import Shown
from benchmarks.compare.trees import NoTree, Tree, this_tree, tree_of
from benchmarks.compare.verdict import Verdict
from benchmarks.processes import pin_load

# Beside the benchmarks' own, on the same disk.
DIRECTORY = report.ROOT / ".bench-compare"


def all_rows() -> list[Row]:
    """Every row, in the order of the numbers."""
    found = [*pushes.rows(), *handouts.rows(), *clients.rows(), *stored.rows()]
    return sorted(found, key=lambda row: int(row.number[1:]))


def main() -> int:
    """Reads the command line; returns the exit code."""
    arguments = _arguments()
    # The table is for a person or a file; what happens meanwhile is for a person.
    console = Console(stderr=True)
    try:
        rows = _chosen(arguments.only)
        h2load.check_installed()
        machine.check_cores()
        console.print(f"[dim]making ready {arguments.ref} …[/dim]")
        trees = this_tree(), tree_of(arguments.ref)
    except (*CANNOT_MEASURE, NoTree, ValueError) as error:
        console.print(f"[red]{error}[/red]", highlight=False)
        return 1
    pin_load()
    try:
        return uvloop.run(_run(rows, trees, arguments.pairs, console))
    finally:
        shutil.rmtree(DIRECTORY, ignore_errors=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("ref", metavar="REF", help="A commit, branch or tag.")
    parser.add_argument("--only", metavar="P1,P5", default="", help="These, not all.")
    parser.add_argument("--pairs", type=int, default=PAIRS_MIN, help="Pairs per row.")
    arguments = parser.parse_args()
    if arguments.pairs < PAIRS_MIN:
        parser.error(f"fewer than {PAIRS_MIN} pairs say nothing about their spread")
    return arguments


def _chosen(words: str) -> list[Row]:
    """Rows by their numbers; none named: all."""
    wanted = {word.strip().upper() for word in words.split(",") if word.strip()}
    rows = all_rows()
    numbers = list(dict.fromkeys(row.number for row in rows))
    if unknown := wanted - set(numbers):
        raise ValueError(f"no row {', '.join(sorted(unknown))}; there are {', '.join(numbers)}")
    return [row for row in rows if not wanted or row.number in wanted]


async def _run(rows: Sequence[Row], trees: tuple[Tree, Tree], pairs: int, console: Console) -> int:
    began = perf_counter()
    here, there = (_side(tree, label) for tree, label in zip(trees, ("here", "there"), strict=True))
    if gone := trees[0].flags - trees[1].flags:
        console.print(f"[dim]{there.name} does not know {', '.join(sorted(gone))}[/dim]")
    if machine.load_average() > 0.5:
        load = machine.load_average()
        console.print(f"[yellow]The machine is busy already: load average {load:.1f}.[/yellow]")
    # The load's own garbage must not be collected while it is timed.
    gc.disable()
    done: list[Shown] = []
    for row in rows:
        done.append(await _compared(row, here, there, pairs))
        console.print("  ".join(cell for cell in table.cells(done[-1]) if cell), highlight=False)
        gc.collect()
    _show(done, table.heads(there.name, here.name), pairs)
    console.print(f"{perf_counter() - began:.0f} s in all")
    return 1 if any(_is_bad(row, here) for row in done) else 0


def _side(tree: Tree, label: str) -> Side:
    directory = DIRECTORY / label
    directory.mkdir(parents=True, exist_ok=True)
    bench = Bench(
        directory=directory,
        quick=True,
        fsync_seconds=0.0,
        report=lambda _figure: None,
        python=str(tree.python),
        flags=tree.flags,
    )
    return Side(tree.name, bench)


async def _compared(row: Row, here: Side, there: Side, pairs: int) -> Shown:
    try:
        return await compare_row(row, here, there, pairs)
    except NotCompared as error:
        return row, error


def _show(done: Sequence[Shown], names: list[str], pairs: int) -> None:
    console = Console()
    if console.is_terminal:
        console.print(table.rich_table(names, done))
        console.print(table.legend(pairs), highlight=False)
    else:
        print(table.markdown(names, done), "", table.legend(pairs), sep="\n")


def _is_bad(row: Shown, here: Side) -> bool:
    """Slower, or nothing that could be shown not to be."""
    if isinstance(row, Outcome):
        return row.verdict is Verdict.SLOWER
    return row[1].side is here


if __name__ == "__main__":
    sys.exit(main())
