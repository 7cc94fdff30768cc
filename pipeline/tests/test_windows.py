"""Ranges of time that a batch touches."""

from __future__ import annotations

from jobline_pipeline.windows import RANGES_MAX, predicate, touched
from tests.rows import us

MINUTE = 60_000_000


def test_spans_become_whole_minutes():
    """A minute is made again as a whole; neighbours are one range."""
    assert touched([(us(61), us(62)), (us(119), us(121))], 60) == [(us(60), us(180))]


def test_far_spans_stay_apart():
    """What lies between is not made again."""
    assert touched([(us(0), us(0)), (us(600), us(600))], 60) == [
        (us(0), us(60)),
        (us(600), us(660)),
    ]


def test_many_ranges_are_joined_at_the_least_gaps():
    """A predicate has a limit, and every span stays covered."""
    spans = [(us(n * 600), us(n * 600)) for n in range(100)]
    ranges = touched(spans, 60)
    assert len(ranges) == RANGES_MAX
    assert all(any(low <= at < high for low, high in ranges) for at, _ in spans)


def test_predicate_names_the_dates():
    """Partitions of other days are not opened."""
    assert predicate("at", [(us(0), us(60))], "date") == (
        "date BETWEEN DATE '2026-11-02' AND DATE '2026-11-02' AND ((at >= TIMESTAMP "
        "'2026-11-02 12:00:00.000000Z' AND at < TIMESTAMP '2026-11-02 12:01:00.000000Z'))"
    )
    assert predicate("at", []) == "false"
