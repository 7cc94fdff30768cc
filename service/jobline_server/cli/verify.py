"""`jobline verify FILE`: is what a stopped server left on its disk whole."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from jobline.cli.command import flowing
from jobline.cli.exit_codes import Exit
from jobline.cli.findings import Finding, Health, line_of
from jobline_server.cli.offline import PANEL, Json, Store, looking_at

if TYPE_CHECKING:
    from jobline_server.offline.findings import Checked


def register(app: typer.Typer) -> None:
    """Adds `verify`."""
    verify.__doc__ = flowing(verify.__doc__ or "")
    app.command("verify", rich_help_panel=PANEL)(verify)


def verify(path: Store, *, as_json: Json = False) -> None:
    """Check the files of a server that is stopped: pages, journal, checkpoints, checksums.

    It reads everything and changes nothing. Ends with 1 if something is damaged, with 2 if the
    files are not Jobline's, with 3 if they are not there, and with 5 if a server is at work on
    them or they have another format.
    """
    from jobline_server.offline.checks import check

    is_damaged = False
    with looking_at(path, as_json=as_json) as (files, out, bars):
        for checked in check(files, bars):
            bars.end()
            is_damaged |= checked.is_damaged
            finding = _finding(checked)
            if as_json:
                out.line({**asdict(finding), "health": finding.health.name.lower()})
            else:
                out.console.print(line_of(finding), soft_wrap=True)
        if is_damaged:
            out.note(
                "Copy the directory before you do anything else; docs/operations.md says what a "
                "start makes of it."
            )
            raise typer.Exit(Exit.FAILED)


def _finding(checked: Checked) -> Finding:
    health = Health.FAILED if checked.is_damaged else Health.FINE
    return Finding(checked.what, checked.found, health)
