"""`jobline tail`: what happens, as it happens."""

from __future__ import annotations

from itertools import islice

import typer
from rich.text import Text

from jobline._enums import EventKind, all_named
from jobline._printable import printable
from jobline._server_values import Event
from jobline.cli import options as option
from jobline.cli.as_json import plain
from jobline.cli.command import SERVER, Cli, command
from jobline.cli.selection import reason_name

# Of a piece of a result, in a line.
PIECE_CHARACTERS_MAX = 200

_STYLES = {
    EventKind.COMPLETED: "green",
    EventKind.RETRYING: "yellow",
    EventKind.STALLED: "yellow",
    EventKind.DEAD: "bold red",
    EventKind.CANCELLED: "magenta",
    EventKind.WORKER_LOST: "yellow",
    EventKind.STORAGE_LOW: "bold red",
}


def register(app: typer.Typer) -> None:
    """Adds `tail`."""
    command(app, "tail", rich_help_panel=SERVER)(tail)


def tail(  # one argument an option of the command
    cli: Cli,
    queues: option.WatchedQueues = None,
    *,
    job: option.WatchedJob = None,
    kind: option.Kinds = None,
    resume: option.ResumeToken = "",
    limit: option.Samples = 0,
) -> None:
    """Print what happens to jobs and queues, as it happens, until you stop it.

    With --json each line carries the token that --resume takes to go on after it.
    """
    kinds = all_named(EventKind, kind or [])
    events = cli.client.watch(queues=queues or [], job_id=job, kinds=kinds, resume_token=resume)
    cli.out.note(f"watching {', '.join(queues or ['all queues'])} at {cli.server}; ^C to end")
    for event, token in islice(events, limit or None):
        if cli.out.as_json:
            cli.out.line({**plain(event), "resume_token": token})
        else:
            cli.out.console.print(event_line(event))


def event_line(event: Event) -> Text:
    """An event as a line."""
    at, kind = event.at, event.kind
    line = Text(at.astimezone().strftime("%H:%M:%S.%f")[:-3] if at else "", style="dim")
    line.append(f" {kind.name.lower():<16}", style=_STYLES.get(kind, ""))
    line.append(printable(" ".join(_parts(event))))
    return line


def _parts(event: Event) -> list[str]:
    parts = [event.queue]
    if event.job_id:
        parts.append(f"{event.job_id}")
    parts += [event.name] if event.name else []
    if event.group and event.group != event.name:
        parts.append(f"group {event.group}")
    if event.worker:
        parts.append(f"at {event.worker}")
    if event.attempt:
        parts.append(f"attempt {event.attempt}")
    if event.progress:
        parts.append(f"{event.progress:.0f} %")
    if event.principal:
        parts.append(f"by {event.principal}")
    piece = event.partial.decode(errors="replace")[:PIECE_CHARACTERS_MAX]
    details = [reason_name(event.reason), event.error_type, event.error_message, event.message]
    details.append(piece)
    return parts + [part for part in details if part]
