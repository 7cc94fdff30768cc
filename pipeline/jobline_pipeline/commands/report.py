"""`report`: what the tables say, as an HTML page or as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from jobline_pipeline.command import opened, steps, write_line
from jobline_pipeline.command_options import TABLES, AsJson, Memory, Tables


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(report)


def report(
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file.")] = Path("report.html"),
    tables: Tables = TABLES,
    memory: Memory = "2g",
    as_json: AsJson = False,
) -> None:
    """Write a page that shows what is late, what fails, and how many workers are needed."""
    with steps() as shown, opened(tables, memory=memory) as store:
        from jobline_pipeline.report.answers import collect

        answers = collect(store, shown.step)
        if as_json:
            write_line(json.dumps(answers, ensure_ascii=False))
            return
        from jobline_pipeline.report.page import page

        out.write_text(page(answers), encoding="utf-8")
        shown.note(f"Written to {out} ({out.stat().st_size / 1e6:.1f} MB).")
