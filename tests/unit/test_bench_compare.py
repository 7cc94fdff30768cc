"""The comparison with another commit: its arithmetic, its pairs, its table. Nothing is measured."""

from __future__ import annotations

from contextlib import asynccontextmanager
from math import inf
from pathlib import Path

import pytest

from benchmarks.bench import Bench
from benchmarks.compare import __main__ as program
from benchmarks.compare import table
from benchmarks.compare.pairs import NotCompared, Outcome, Side, compare_row
from benchmarks.compare.rows import Row
from benchmarks.compare.trees import NoTree, tree_of
from benchmarks.compare.verdict import Comparison, Judge, Sample, Speed, Verdict, compare
from benchmarks.figures import Unit
from benchmarks.h2load import LoadFailed


def bench() -> Bench:
    return Bench(directory=Path(), quick=True, fsync_seconds=0.0, report=lambda _figure: None)


HERE = Side("here", bench())
THERE = Side("v0", bench())


def samples(*figures: float) -> list[Sample]:
    return [Sample(figure) for figure in figures]


def scripted(
    unit: Unit, here: list[list[float]], there: list[list[float]]
) -> tuple[Row, list[str]]:
    """A row whose openings give these figures, and who was measured in which order."""
    script = {id(HERE.bench): ("A", iter(here)), id(THERE.bench): ("B", iter(there))}
    order: list[str] = []

    @asynccontextmanager
    async def opened(side: Bench):
        name, openings = script[id(side)]
        figures = iter(next(openings))

        async def measure() -> Sample:
            order.append(name)
            return Sample(next(figures))

        yield measure

    return Row("P1", "a push", unit, opened), order


# ------------------------------------------------------------------------------------- arithmetic


def test_spread_is_half_the_distance_between_the_quartiles():
    """One pair that met something else on the machine moves neither the median nor the spread."""
    assert Speed.of([0.5, 1.0, 1.25, 1.5, 9.0]) == Speed(1.25, 0.25)


def test_one_pair_says_nothing_about_its_spread():
    """However slow it is, it could be chance."""
    assert Speed.of([0.1]) == Speed(0.1, inf)
    assert Speed.of([0.1]).verdict is Verdict.SAME


@pytest.mark.parametrize(
    ("median", "spread", "verdict"),
    [
        (0.94, 0.0, Verdict.SLOWER),
        (0.94, 0.02, Verdict.SAME),
        (0.96, 0.0, Verdict.SAME),
        (0.80, 0.14, Verdict.SLOWER),
        (1.06, 0.0, Verdict.FASTER),
        (1.06, 0.02, Verdict.SAME),
    ],
)
def test_verdict_is_beyond_five_per_cent_and_the_spread(median, spread, verdict):
    """Both have to be exceeded, in either direction."""
    assert Speed(median, spread).verdict is verdict


@pytest.mark.parametrize(
    ("unit", "speed"),
    [(Unit.JOBS, 0.5), (Unit.CALLS, 0.5), (Unit.TIME, 2.0), (Unit.BYTES, 2.0), (Unit.SHARE, 2.0)],
)
def test_ratio_is_a_speed_whatever_the_unit(unit, speed):
    """Half of a rate is slower; half of a time, of memory or of a core is faster."""
    assert compare(unit, samples(1, 1), samples(2, 2)).figure.median == speed


def test_processor_time_counts_as_speed():
    """Twice the processor time per job is half the speed."""
    found = compare(Unit.JOBS, [Sample(1, 2e-6)] * 2, [Sample(1, 1e-6)] * 2)
    assert found.processor == Speed(0.5, 0.0)


def test_figure_that_some_pairs_lack_is_no_figure():
    """A row without processor times is judged by what it has."""
    found = compare(Unit.JOBS, [Sample(1, 1e-6), Sample(1)], [Sample(1, 1e-6)] * 2)
    assert found.processor is None
    assert found.judge is Judge.FIGURE


def test_figure_that_repeats_best_judges():
    """A rate that jumps says less than processor time that does not."""
    found = Comparison(1, 1, figure=Speed(1.2, 0.2), processor=Speed(0.9, 0.01))
    assert found.judge is Judge.PROCESSOR
    assert found.verdict is Verdict.SLOWER


def test_rate_that_is_slower_beyond_its_spread_is_slower_in_any_case():
    """Users wait for what no processor works on, too."""
    found = Comparison(1, 1, figure=Speed(0.7, 0.1), processor=Speed(1.0, 0.01))
    assert found.judge is Judge.PROCESSOR
    assert found.verdict is Verdict.SLOWER


def test_processor_time_that_repeats_worse_does_not_judge():
    """It is shown, and that is all."""
    found = Comparison(1, 1, figure=Speed(1.0, 0.01), processor=Speed(0.5, 0.1))
    assert found.verdict is Verdict.SAME


# ------------------------------------------------------------------------------------------ pairs


async def test_pairs_alternate_and_the_first_is_not_counted():
    """AB BA AB …: what drifts meets both alike."""
    row, order = scripted(Unit.JOBS, [[9, 1, 1, 1]], [[1, 1, 1, 1]])
    outcome = await compare_row(row, HERE, THERE, 3)
    assert "".join(order) == "BAABBAAB"
    assert outcome.comparison.figure == Speed(1.0, 0.0)


@pytest.mark.parametrize(("seems", "first"), [(1, Verdict.SLOWER), (4, Verdict.FASTER)])
async def test_row_that_seems_to_differ_is_measured_again(seems, first):
    """What differed by chance does not differ twice, on servers that know nothing of the first."""
    row, _ = scripted(Unit.JOBS, [[seems] * 6, [2] * 6], [[2] * 6, [2] * 6])
    outcome = await compare_row(row, HERE, THERE, 5)
    assert outcome.verdict is Verdict.SAME
    assert outcome.first is not None
    assert outcome.first.verdict is first


async def test_row_that_is_slower_twice_is_slower():
    """And its table row shows both."""
    row, _ = scripted(Unit.JOBS, [[1] * 6] * 2, [[2] * 6] * 2)
    outcome = await compare_row(row, HERE, THERE, 5)
    assert outcome.verdict is Verdict.SLOWER
    assert table.cells(outcome)[-1] == "slower (measured twice; first 0.50 ± 0.00)"


async def test_what_cannot_be_measured_is_named_with_its_side():
    """The reason stands in the table."""

    @asynccontextmanager
    async def opened(side: Bench):
        async def measure() -> Sample:
            if side is THERE.bench:
                raise LoadFailed("the client ended: no Worker")
            return Sample(1)

        yield measure

    row = Row("P4", "a worker", Unit.JOBS, opened)
    with pytest.raises(NotCompared) as caught:
        await compare_row(row, HERE, THERE, 5)
    assert caught.value.side is THERE
    assert table.cells((row, caught.value))[-1] == "not compared: v0: the client ended: no Worker"


# ---------------------------------------------------------------------------------------- program


def test_every_number_that_may_not_get_slower_has_rows():
    """P1 to P11, and P14; the others are not a matter of speed between commits."""
    numbers = [row.number for row in program.all_rows()]
    assert list(dict.fromkeys(numbers)) == [*(f"P{number}" for number in range(1, 12)), "P14"]


def outcome(figure: Speed) -> Outcome:
    row, _ = scripted(Unit.JOBS, [], [])
    return Outcome(row, Comparison(1, 1, figure))


@pytest.mark.parametrize(
    ("shown", "bad"),
    [
        (outcome(Speed(1.0, 0.0)), False),
        (outcome(Speed(0.5, 0.0)), True),
        ((outcome(Speed(1, 0)).row, NotCompared(HERE, "it did not start")), True),
        ((outcome(Speed(1, 0)).row, NotCompared(THERE, "it did not start")), False),
    ],
)
def test_run_fails_for_what_is_slower_or_broken_here(shown, bad):
    """A commit that cannot do what is asked makes nothing slower."""
    assert program._is_bad(shown, HERE) is bad


def test_table_is_markdown_where_it_is_piped():
    """It can be put into a text as it is."""
    lines = table.markdown(table.heads("v0", "here"), [outcome(Speed(1.0, 0.01))]).splitlines()
    assert lines[0] == "| # | what | v0 | here | figure | processor | verdict |"
    assert lines[2] == "| P1 | a push | 1 jobs/s | 1 jobs/s | 1.00 ± 0.01 * |  | same |"


def test_unknown_commit_is_named():
    """Before anything is installed."""
    with pytest.raises(NoTree, match="no-such-commit"):
        tree_of("no-such-commit")
