"""Answers as plots of Vega-Lite. Colours of text and lines come from the page, by its theme."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import altair as alt

from jobline_pipeline.report.shown import span

if TYPE_CHECKING:
    from jobline_pipeline.report.answers import Rows

# Colours that can be told apart, on white and on black; the other queues share a grey.
COLOURS = (
    "#4c8bf5", "#f2994a", "#27a567", "#eb5757", "#9b6ddf", "#17b3c1", "#d4a514", "#e377c2",
)  # fmt: skip
OTHERS, OTHERS_COLOUR = "others", "#8d96a5"
_HEIGHT = 190
# Milliseconds on an axis, with the unit that fits.
_TIME_LABEL = (
    "datum.value >= 3600000 ? format(datum.value / 3600000, '~r') + ' h' : "
    "datum.value >= 60000 ? format(datum.value / 60000, '~r') + ' min' : "
    "datum.value >= 1000 ? format(datum.value / 1000, '~r') + ' s' : "
    "format(datum.value, '~r') + ' ms'"
)
# Where a log scale of times has its labels: 1 ms … 28 hours.
_TIME_VALUES = [0.1, 1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 36_000_000, 100_000_000]
# How a moment is written on an axis, by the length of spans; 24 hours, and the day where it begins.
_SECONDS = "utcFormat(datum.value, '%H:%M:%S')"
_MINUTES = (
    "utcFormat(datum.value, '%H%M') == '0000' ? utcFormat(datum.value, '%d %b') : "
    "utcFormat(datum.value, '%H:%M')"
)
_COUNTS = alt.Axis(labelExpr="format(datum.value, '~s')", tickCount=5, tickMinStep=1)
_DAYS = "utcFormat(datum.value, '%d %b')"


def colours(moments: Rows) -> dict[str, str]:
    """Returns queue → colour, the queues with the most jobs first; the last is for the others."""
    jobs: Counter[str] = Counter()
    for row in moments:
        jobs[row["queue"]] += row["opened"]
    ranked = sorted(jobs, key=lambda queue: (-jobs[queue], queue))
    named = dict(zip(ranked, COLOURS, strict=False))
    return named if len(ranked) <= len(COLOURS) else {**named, OTHERS: OTHERS_COLOUR}


def charts(moments: Rows, grain: int) -> dict[str, dict[str, Any]]:
    """Returns title → specification; none if there are no moments."""
    if not moments:
        return {}
    scale = alt.Scale(domain=list(found := colours(moments)), range=list(found.values()))
    queue = alt.Color("queue:N", scale=scale, legend=None)
    length = span(grain)
    made = {
        f"Jobs pushed per {length}": _bars(moments, "opened", grain, queue),
        "Wait for a worker, p99": _waits(moments, grain, queue),
        f"Attempts failed or lost per {length}": _bars(moments, "failed", grain, queue),
        "Open jobs": _open(moments, grain, queue),
    }
    return {title: chart.to_dict() for title, chart in made.items()}


def _bars(moments: Rows, column: str, grain: int, queue: alt.Color) -> Any:
    summed: Counter[tuple[str, str]] = Counter()
    named = colours(moments)
    for row in moments:
        if row[column]:
            summed[row["begin"], _name(row, named)] += row[column]
    ranks = {name: rank for rank, name in enumerate(named)}
    values = [
        {
            "begin": begin,
            "until": _later(begin, grain * 0.94).isoformat(),
            "queue": name,
            "rank": ranks[name],
            column: number,
        }
        for (begin, name), number in summed.items()
    ]
    stacked = _chart(values).transform_stack(
        stack=column, groupby=["begin"], sort=[alt.SortField("rank")], as_=["low", "high"]
    )
    return stacked.mark_rect().encode(
        x=_time(moments, grain),
        x2="until:T",
        y=alt.Y("low:Q", title=None, axis=_COUNTS),
        y2="high:Q",
        color=queue,
        tooltip=_tooltip(column),
    )


def _waits(moments: Rows, grain: int, queue: alt.Color) -> Any:
    named = colours(moments)
    values = [
        # A log scale has no zero, and less than a tenth of a millisecond is nothing.
        {"begin": row["begin"], "queue": row["queue"], "ms": max(row["wait_p99_ms"], 0.1)}
        for row in moments
        if row["wait_p99_ms"] is not None and row["queue"] in named
    ]
    axis = alt.Axis(labelExpr=_TIME_LABEL, values=_TIME_VALUES)
    return (
        _chart(values)
        .mark_line(point={"size": 14}, strokeWidth=1.6)
        .encode(
            x=_time(moments, grain),
            y=alt.Y("ms:Q", title=None, scale=alt.Scale(type="log"), axis=axis),
            color=queue,
            tooltip=_tooltip("ms"),
        )
    )


def _open(moments: Rows, grain: int, queue: alt.Color) -> Any:
    named = colours(moments)
    values = [
        {"begin": row["begin"], "queue": row["queue"], "open": max(row["open"], 0)}
        for row in moments
        if row["queue"] in named
    ]
    return (
        _chart(values)
        .mark_line(interpolate="step-after", strokeWidth=1.6)
        .encode(
            x=_time(moments, grain),
            y=alt.Y("open:Q", title=None, axis=_COUNTS),
            color=queue,
            tooltip=_tooltip("open"),
        )
    )


def _chart(values: Rows) -> Any:
    return alt.Chart(alt.InlineData(values=values), width="container", height=_HEIGHT)


def _time(moments: Rows, grain: int) -> alt.X:
    """The same axis for all plots, so that what happened together stands together."""
    begins = [row["begin"] for row in moments]
    scale = alt.Scale(
        type="utc",
        domainMin=int(_later(min(begins), 0).timestamp() * 1_000),
        domainMax=int(_later(max(begins), grain).timestamp() * 1_000),
    )
    words = _SECONDS if grain < 60 else _MINUTES if grain < 43_200 else _DAYS
    axis = alt.Axis(labelExpr=words, tickCount=6, labelOverlap=True, grid=False)
    return alt.X("begin:T", title=None, scale=scale, axis=axis)


def _later(begin: str, seconds: float) -> datetime:
    return datetime.fromisoformat(begin) + timedelta(seconds=seconds)


def _tooltip(column: str) -> list[Any]:
    begin = alt.Tooltip("utcyearmonthdatehoursminutesseconds(begin):T", title="from, UTC")
    return [begin, alt.Tooltip("queue:N"), alt.Tooltip(f"{column}:Q", format=",~r")]


def _name(row: dict[str, Any], named: dict[str, str]) -> str:
    return str(row["queue"]) if row["queue"] in named else OTHERS
