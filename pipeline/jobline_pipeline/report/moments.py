"""What happened when: the history cut into spans of one length, which fits how long it is.

A day is shown by quarters of an hour, a minute by seconds. Spans of whole minutes come from
`queue_minutes`, whose sketches merge; shorter ones from the events themselves, which are few then.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from jobline_pipeline.schemas import ENDINGS, FAILURES, OPENINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
GRAINS = (
    1, 2, 5, 10, 20, 30, _MINUTE, 2 * _MINUTE, 5 * _MINUTE, 10 * _MINUTE, 15 * _MINUTE,
    30 * _MINUTE, _HOUR, 2 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR, _DAY, 7 * _DAY, 28 * _DAY,
)  # fmt: skip
# As many bars as can be told apart in a plot.
SPANS_MAX = 72


@dataclass(frozen=True, slots=True)
class Period:
    """The time of a history, from its first event to its last, and the length of its spans."""

    first: datetime
    last: datetime
    grain: int

    @property
    def seconds(self) -> float:
        """Returns how long it is."""
        return (self.last - self.first).total_seconds()


def period_of(first: datetime, last: datetime) -> Period:
    """Returns the period with the shortest spans that are not too many."""
    seconds = (last - first).total_seconds()
    grain = next((each for each in GRAINS if seconds / each <= SPANS_MAX), GRAINS[-1])
    return Period(first, last, grain)


def period(spark: SparkSession) -> Period | None:
    """Returns the period of the tables, None if they are empty. Needs their views."""
    first, last = spark.sql("SELECT min(minute), max(minute) FROM queue_minutes").collect()[0]
    if first is None:
        return None
    found = period_of(first, last + timedelta(minutes=1))
    if found.grain >= _MINUTE:
        return found
    # A minute is much of so short a time: it is as long as its events are.
    return period_of(*spark.sql("SELECT min(at), max(at) FROM events").collect()[0])


def question(grain: int) -> str:
    """Returns the question for what happened in each span of `grain` seconds, by queue."""
    counted = _of_minutes(grain) if grain % _MINUTE == 0 else _of_events(grain)
    return f"""
        SELECT begin, queue, opened, completed, failed, wait_p99_ms,
               sum(opened - ended) OVER (PARTITION BY queue ORDER BY begin) AS open
        FROM ({counted}) ORDER BY begin, queue"""


def merged_quantile(sketch: str, rank: float) -> str:
    """Returns SQL for a quantile of merged sketches; NULL if they hold nothing."""
    merged = f"kll_merge_agg_float({sketch})"
    return (
        f"CASE WHEN kll_sketch_get_n_float({merged}) > 0 "
        f"THEN kll_sketch_get_quantile_float({merged}, {rank}D) END"
    )


def _of_minutes(grain: int) -> str:
    return f"""
        SELECT {_begin("minute", grain)} AS begin, queue, sum(opened) AS opened,
               sum(ended) AS ended, sum(completed) AS completed, sum(failed) AS failed,
               {merged_quantile("wait_sketch", 0.99)} AS wait_p99_ms
        FROM queue_minutes GROUP BY 1, 2"""


def _of_events(grain: int) -> str:
    waited = "(unix_micros(leased_at) - unix_micros(ready_at)) / 1000"
    is_hand_out = f"event IN {_listed(ENDINGS)} AND leased_at IS NOT NULL"
    return f"""
        SELECT {_begin("at", grain)} AS begin, queue,
               count_if(event IN {_listed(OPENINGS)}) AS opened, count_if(final) AS ended,
               count_if(event = 'completed') AS completed,
               count_if(event IN {_listed(FAILURES)} AND leased_at IS NOT NULL) AS failed,
               percentile_approx(greatest({waited}, 0), 0.99D) FILTER (WHERE {is_hand_out})
                 AS wait_p99_ms
        FROM events WHERE queue IS NOT NULL AND event IN {_listed((*OPENINGS, *ENDINGS))}
        GROUP BY 1, 2"""


def _begin(column: str, grain: int) -> str:
    return f"timestamp_seconds(unix_seconds({column}) div {grain} * {grain})"


def _listed(words: tuple[str, ...]) -> str:
    return "(" + ", ".join(f"'{word}'" for word in words) + ")"
