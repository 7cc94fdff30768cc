"""Ranges of time that a batch touches: gold tables are made again for these, and for no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from jobline_pipeline.history import merged

# A predicate of more ranges than this is slower than reading what lies between them.
RANGES_MAX = 32

Range = tuple[int, int]  # microseconds since 1970, the end excluded


def touched(spans: Iterable[tuple[int, int]], grain_seconds: int) -> list[Range]:
    """Returns the whole minutes or hours that hold the spans (µs, both ends included), merged."""
    grain = grain_seconds * 1_000_000
    whole = [(low // grain * grain, high // grain * grain + grain - 1) for low, high in spans]
    ranges = [(low, high + 1) for low, high in merged(whole)]
    while len(ranges) > RANGES_MAX:
        gaps = [ranges[n + 1][0] - ranges[n][1] for n in range(len(ranges) - 1)]
        least = gaps.index(min(gaps))
        ranges[least : least + 2] = [(ranges[least][0], ranges[least + 1][1])]
    return ranges


def sql(us: int) -> str:
    """Returns a time as Spark's SQL has it."""
    return f"TIMESTAMP '{datetime.fromtimestamp(us / 1e6, UTC):%Y-%m-%d %H:%M:%S.%f}Z'"


def iso(us: int) -> str:
    """Returns a time as DataFusion takes it, which knows by the column that it is one."""
    return f"'{datetime.fromtimestamp(us / 1e6, UTC):%Y-%m-%dT%H:%M:%S.%f}Z'"


def predicate(
    column: str,
    ranges: Sequence[Range],
    date: str | None = None,
    *,
    literal: Callable[[int], str] = sql,
) -> str:
    """Returns the same condition as text; `literal` writes a time in the language of the reader."""
    if not ranges:
        return "false"
    times = " OR ".join(
        f"({column} >= {literal(low)} AND {column} < {literal(high)})" for low, high in ranges
    )
    if date is None:
        return times
    first = datetime.fromtimestamp(ranges[0][0] / 1e6, UTC).date()
    last = datetime.fromtimestamp((ranges[-1][1] - 1) / 1e6, UTC).date()
    return f"{date} BETWEEN DATE '{first}' AND DATE '{last}' AND ({times})"
