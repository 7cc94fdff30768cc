"""`jobline restore BACKUP DATA`: makes a data directory of a backup."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.filesize import decimal

from jobline.cli.command import flowing
from jobline.cli.durations import show_moment
from jobline_server.cli.offline import PANEL, Json, reading

if TYPE_CHECKING:
    from jobline_server.offline.backups.restoring import Found, Restored

Backup = Annotated[
    str,
    typer.Argument(
        metavar="BACKUP",
        help="A backup, or where backups are: the newest, by how far its journal is. "
        "A directory or URL.",
    ),
]
Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="The new data directory: not there yet, or empty.")
]


def register(app: typer.Typer) -> None:
    """Adds `restore`."""
    restore.__doc__ = flowing(restore.__doc__ or "")
    app.command("restore", rich_help_panel=PANEL)(restore)


def restore(backup: Backup, data: Data, *, as_json: Json = False) -> None:
    """Make a data directory of a backup, on which a server can be started.

    Everything is compared with the checksums of the backup, and checked like `jobline verify` does,
    before the directory has it. Stop the server whose backup it is first: ids and deliveries that
    it gave out after the backup are not given out again, but those that it gives out later may be.

    Ends with 1 if the backup is damaged or cannot be read, with 2 if a URL needs what is not
    installed, with 3 if there is none, and with 5 if a newer version made it or the directory is
    not empty.
    """
    from jobline_server.offline.backups.restoring import find_backup
    from jobline_server.offline.backups.restoring import restore as restore_in

    with reading(as_json=as_json) as (out, bars):
        # Any time at which the server was lost is before this one.
        now_ms = time.time_ns() // 1_000_000
        restored = restore_in(find_backup(backup), data, now_ms, bars)
        bars.end()
        out.document(_as_json(restored, data), _sentence(restored, data))
        if not restored.skips_all:
            out.note(
                "The backup is so old, or was made by a clock so far ahead, that it is not certain "
                "that all ids given out since are skipped: an id may be given a second time."
            )


def _as_json(restored: Restored, data: Path) -> dict[str, object]:
    manifest = restored.found.manifest
    return {
        "name": manifest.name,
        "taken_of": restored.found.count,
        "later_named": list(restored.found.later_named),
        "taken_at": datetime.fromtimestamp(manifest.at_ms / 1_000, UTC).isoformat(),
        "server_version": manifest.server_version,
        "bytes": manifest.total_bytes,
        "data": str(data),
        "skips_all_ids": restored.skips_all,
    }


def _sentence(restored: Restored, data: Path) -> str:
    manifest = restored.found.manifest
    at = show_moment(datetime.fromtimestamp(manifest.at_ms / 1_000, UTC))
    return (
        f"{_taken(restored.found)}"
        f"{data} has the state of {at}: {decimal(manifest.total_bytes)}, all as it was backed up\n"
        f"Jobs that were pushed or ended after that are not in it. Start it: jobline serve --data "
        f"{data}"
    )


def _taken(found: Found) -> str:
    """Returns which backup was taken and why, where none was named."""
    if found.count == 1:
        return ""
    said = (
        f"{found.manifest.name} was taken: its journal is the furthest of {found.count} backups\n"
    )
    if not found.later_named:
        return said
    return (
        f"{said}Later by name, of a clock that was ahead: {len(found.later_named)}, such as "
        f"{found.later_named[0]}\n"
    )
