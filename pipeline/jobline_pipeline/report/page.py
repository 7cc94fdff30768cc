"""The report as one HTML file: its plots need no network, and work from a mail or a disk."""

from __future__ import annotations

import json
from html import escape
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobline_pipeline.report import shown
from jobline_pipeline.report.charts import charts, colours
from jobline_pipeline.report.findings import findings
from jobline_pipeline.report.sections import SECTIONS, Column, Section

if TYPE_CHECKING:
    from jobline_pipeline.report.answers import Rows

_STYLE = Path(__file__).with_name("style.css")
_SCRIPT = Path(__file__).with_name("page.js")
_TOTALS = {
    "opened": "jobs pushed",
    "completed": "completed",
    "failed": "attempts failed or lost",
    "dead": "dead",
    "cancelled": "cancelled or expired",
    "open": "open",
}
_FOOTER = (
    "Times are UTC. Quantiles of whole minutes come from KLL sketches: their rank is right within "
    "1.5 %."
)
# Capacity is about whole hours: of a shorter history it would say that nobody is needed.
_CAPACITY_SECONDS_MIN = 3_600


def page(answers: dict[str, Rows]) -> str:
    """Returns the report as HTML."""
    body = "".join(_body(answers)) if answers["period"] else "<p>There are no events yet.</p>"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Jobline report</title><style>{_STYLE.read_text(encoding='utf-8')}</style></head>"
        f"<body><h1>Jobline report</h1>{body}</body></html>"
    )


def _body(answers: dict[str, Rows]) -> list[str]:
    import vl_convert  # noqa: PLC0415 - it loads an engine of JavaScript

    period = answers["period"][0]
    if _seconds(period) < _CAPACITY_SECONDS_MIN:
        answers = {**answers, "capacity": []}
    script = _SCRIPT.read_text(encoding="utf-8")
    plots = charts(answers["moments"], period["grain"])
    bundle = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # the stub lacks a default
    return [
        f'<p class="period">{escape(shown.period(period["first"], period["last"]))}</p>',
        _totals(answers["totals"][0]),
        _findings(findings(answers)),
        _legend(answers["moments"]),
        _figures(list(plots)),
        *(_section(each, answers[each.name]) for each in SECTIONS if answers[each.name]),
        f"<footer>{_FOOTER}</footer>",
        f"<script>{bundle}</script>",
        f"<script>const plots = {_json(list(plots.values()))};{script}</script>",
    ]


def _seconds(period: dict[str, Any]) -> float:
    return shown.seconds_between(period["first"], period["last"])


def _totals(total: dict[str, Any]) -> str:
    boxes = "".join(
        f"<div><b>{total[name]:,}</b>{escape(what)}</div>" for name, what in _TOTALS.items()
    )
    return f'<div class="totals">{boxes}</div>'


def _findings(sentences: list[str]) -> str:
    if not sentences:
        return ""
    items = "".join(f"<li>{escape(each)}</li>" for each in sentences)
    return f'<ul class="findings">{items}</ul>'


def _legend(moments: Rows) -> str:
    items = "".join(
        f'<li><i style="background:{colour}"></i>{escape(queue)}</li>'
        for queue, colour in colours(moments).items()
    )
    return f'<ul class="legend">{items}</ul>'


def _figures(titles: list[str]) -> str:
    figures = "".join(
        f'<figure><h3>{escape(title)}</h3><div id="plot{number}"></div></figure>'
        for number, title in enumerate(titles)
    )
    return f'<div class="plots">{figures}</div>'


def _section(section: Section, rows: Rows) -> str:
    head = _heads(section.columns)
    most = {
        column.name: max(row[column.name] or 0 for row in rows)
        for column in section.columns
        if column.is_bar
    }
    body = "".join(
        "<tr>" + "".join(_cell(each, row[each.name], most) for each in section.columns) + "</tr>"
        for row in rows
    )
    return (
        f'<h2>{escape(section.title)}</h2><p class="about">{escape(section.about)}</p>'
        f'<div class="wide"><table>{head}{body}</table></div>'
    )


def _heads(columns: tuple[Column, ...]) -> str:
    titles = "".join(
        f"<th class={'number' if each.is_number else 'name'}>{escape(each.title)}</th>"
        for each in columns
    )
    if not any(each.above for each in columns):
        return f"<tr>{titles}</tr>"
    above = ""
    for name, members in groupby(columns, key=lambda each: each.above):
        above += f'<th class="above" colspan="{len(list(members))}">{escape(name)}</th>'
    return f"<tr>{above}</tr><tr>{titles}</tr>"


def _cell(column: Column, value: Any, most: dict[str, Any]) -> str:
    text = "" if value is None else column.form(value)
    if column.is_bar and most[column.name]:
        part = 100 * (value or 0) / most[column.name]
        return f'<td class="number bar" style="--part:{part:.1f}%">{escape(text)}</td>'
    kind = "number" if column.is_number else "message" if column.is_wide else "name"
    kind = "time" if column.form is shown.moment else kind
    return f'<td class="{kind}">{escape(text)}</td>'


def _json(plots: list[dict[str, Any]]) -> str:
    """JSON that may stand in a script: no name of a queue can end it."""
    return json.dumps(plots).replace("<", "\\u003c")
