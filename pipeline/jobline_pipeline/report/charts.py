"""Answers as plots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

if TYPE_CHECKING:
    from jobline_pipeline.report.answers import Rows

_WIDTH, _HEIGHT = 430, 200


def charts(answers: dict[str, Rows]) -> dict[str, dict[str, Any]]:
    """Returns title → specification of Vega-Lite; answers without rows have none."""
    made: dict[str, Any] = {}
    if answers["hours"]:
        made["Jobs per hour"] = _hours(answers["hours"], "opened", "jobs", stacked=True)
        made["Wait, 99 % quantile"] = _hours(answers["hours"], "wait_p99_ms", "ms", log=True)
        made["Failed attempts per hour"] = _hours(
            answers["hours"], "failed", "attempts", stacked=True
        )
        made["Open jobs"] = _hours(answers["hours"], "backlog", "jobs")
    if answers["capacity_hours"]:
        made["Workers needed"] = _hours(answers["capacity_hours"], "workers_needed", "workers")
    if answers["errors"]:
        made["Errors"] = _errors(answers["errors"])
    return {title: chart.to_dict() for title, chart in made.items()}


def _hours(rows: Rows, column: str, unit: str, *, stacked: bool = False, log: bool = False) -> Any:
    """One line, or area, per queue over the hours."""
    shown = [
        {"hour": row["hour"], "queue": row["queue"], column: row[column]}
        for row in rows
        if row[column] is not None and (row[column] > 0 or not log)
    ]
    scale = alt.Scale(type="log") if log else alt.Undefined
    value = alt.Y(f"{column}:Q", title=unit, stack=stacked or None, scale=scale)
    base = alt.Chart(_values(shown), width=_WIDTH, height=_HEIGHT)
    marked = base.mark_area() if stacked else base.mark_line()
    return marked.encode(
        x=alt.X("hour:T", title=None),
        y=value,
        color=alt.Color("queue:N", title=None, scale=alt.Scale(scheme="tableau20")),
        tooltip=["hour:T", "queue:N", f"{column}:Q"],
    )


def _values(rows: Rows) -> Any:
    return alt.InlineData(values=rows)


def _errors(rows: Rows) -> Any:
    shown = [
        {"message": row["message"][:60], "failures": row["failures"], "queues": row["queues"]}
        for row in rows
    ]
    return (
        alt.Chart(_values(shown), width=_WIDTH - 160, height=_HEIGHT)
        .mark_bar()
        .encode(
            x=alt.X("failures:Q", title="failed attempts"),
            y=alt.Y("message:N", sort="-x", title=None, axis=alt.Axis(labelLimit=260)),
            tooltip=["message:N", "failures:Q", "queues:N"],
        )
    )
