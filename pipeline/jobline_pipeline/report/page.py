"""The report as one HTML file: its plots need no network, and work from a mail or a disk."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

from jobline_pipeline.report.charts import charts

if TYPE_CHECKING:
    from jobline_pipeline.report.answers import Rows

_SECTIONS = {
    "queues": "Queues",
    "slo": "Objectives",
    "errors": "Errors, nearly equal ones together",
    "versions": "Versions: what changed with a deploy",
    "capacity": "Capacity: workers for a wait under 1 s (99 %), at the busiest hour",
    "fairness": "Fairness between groups",
    "flows": "Flows, the slowest first",
    "batches": "Batches, the least finished first",
    "workers": "Workers, the most failing first",
    "open_jobs": "Open jobs",
    "audit": "Who did what",
    "files": "Files read",
    "bad_files": "Files and rows set apart",
}
_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1240px; padding: 0 1rem;
       color: #1c2330; }
h1 { font-size: 1.5rem; margin-bottom: 0 } h2 { font-size: 1.05rem; margin: 2rem 0 .4rem }
.totals { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1rem 0 }
.totals div { background: #f2f4f8; border-radius: 6px; padding: .5rem 1rem }
.totals b { display: block; font-size: 1.3rem }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(560px, 1fr)); gap: 1rem }
figure { margin: 0 }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
td:first-child { white-space: nowrap; max-width: 24rem; overflow: hidden; text-overflow: ellipsis }
th, td { padding: .2rem .7rem .2rem 0; text-align: left; vertical-align: top;
         border-bottom: 1px solid #e4e8ef; max-width: 30rem; overflow-wrap: anywhere }
th { font-weight: 600; color: #5a6478; overflow-wrap: normal } td.number { text-align: right }
footer { margin-top: 3rem; color: #5a6478 }
"""


def page(answers: dict[str, Rows]) -> str:
    """Returns the report as HTML."""
    import vl_convert  # noqa: PLC0415 - it loads an engine of JavaScript

    plots = charts(answers)
    figures = "".join(
        f'<figure><h2>{escape(title)}</h2><div id="plot{number}"></div></figure>'
        for number, title in enumerate(plots)
    )
    sections = "".join(
        f"<h2>{escape(title)}</h2>{_table(answers[name])}"
        for name, title in _SECTIONS.items()
        if answers[name]
    )
    calls = "".join(
        f"vegaEmbed('#plot{number}', {_script(spec)}, {{actions: false}});"
        for number, spec in enumerate(plots.values())
    )
    bundle = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # the stub lacks a default
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Jobline report</title>'
        f"<style>{_STYLE}</style><h1>Jobline</h1>{_totals(answers['totals'])}"
        f'<div class="plots">{figures}</div>{sections}'
        "<footer>Quantiles come from KLL sketches: their rank is right within 1.5 %.</footer>"
        f"<script>{bundle}</script><script>{calls}</script></html>"
    )


def _totals(rows: Rows) -> str:
    if not rows or rows[0]["first_minute"] is None:
        return "<p>There are no events yet.</p>"
    total = rows[0]
    period = f"<p>{_shown(total['first_minute'])} to {_shown(total['last_minute'])}, UTC</p>"
    boxes = "".join(
        f"<div><b>{total[name]:,}</b>{escape(what)}</div>"
        for name, what in (
            ("opened", "jobs pushed"),
            ("completed", "completed"),
            ("failed", "failed attempts"),
            ("dead", "dead"),
            ("cancelled", "cancelled or expired"),
        )
    )
    return f'{period}<div class="totals">{boxes}</div>'


def _table(rows: Rows) -> str:
    heads = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in rows[0])
    body = "".join("<tr>" + "".join(_cell(k, v) for k, v in row.items()) + "</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{heads}</tr>{body}</table></div>'


def _cell(name: str, value: Any) -> str:
    kind = ' class="number"' if isinstance(value, int | float) else ""
    is_share = isinstance(value, float) and ("share" in name or name in {"progress", "kept"})
    text = f"{value:.2%}" if is_share or "failure_rate" in name else _shown(value)
    if name.endswith("_id"):
        text = str(value)
    return f"<td{kind}>{escape(text)}</td>"


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"
    if isinstance(value, int):
        return f"{value:,}"
    text = str(value)
    if len(text) >= 20 and text[10] == "T" and text[:4].isdigit():
        return text[:16].replace("T", " ")
    return text


def _script(spec: dict[str, Any]) -> str:
    """JSON that may stand in a script: no text of an error can end it."""
    return json.dumps(spec).replace("<", "\\u003c")
