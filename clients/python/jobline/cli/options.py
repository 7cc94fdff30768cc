"""Options and arguments of commands, each declared once: its name and its help.

Declarations only; the commands give them their meaning.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from jobline._filter_words import HELP as FILTER_HELP
from jobline._times import parse_span
from jobline.cli import completion, settings
from jobline.cli.exit_codes import UsageError
from jobline.cli.selection import id_of

INTERVAL_MIN_SECONDS = 0.1


def span(text: str | float) -> float:
    """A span as typer parses it; a default is a number already."""
    if isinstance(text, float):
        return text
    try:
        return parse_span(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _interval(text: str | float) -> float:
    """A span between two looks: without a least one they would be a busy loop."""
    seconds = span(text)
    if seconds < INTERVAL_MIN_SECONDS:
        raise typer.BadParameter(f"{text}: at least 0.1 s between two looks, such as 100ms or 1s")
    return seconds


def _id(text: str | int) -> int:
    """An id as typer parses it."""
    try:
        return id_of(str(text))
    except UsageError as mistake:
        raise typer.BadParameter(str(mistake)) from None


def flag(*names: str, help: str) -> Any:  # noqa: A002  # as typer calls it
    """An option without a value. Without a metavar typer would call it one of type bool."""
    return typer.Option(*names, metavar="", help=help)


def _lines(text: str) -> str:
    """Text whose lines typer shall keep: it joins those of one paragraph."""
    return text.replace("\n", "\n\n")


AsJson = Annotated[bool, flag("--json", help="Print JSON, for programs.")]

# Of commands that change things.
Below = Annotated[bool, flag("--below", help="Also what only these wait for, if not running.")]
DryRun = Annotated[bool, flag("--dry-run", help="Only count what it would do.")]
Yes = Annotated[bool, flag("--yes", "-y", help="Do not ask.")]
Why = Annotated[
    str,
    typer.Option(
        "--reason",
        metavar="TEXT",
        help="Why: kept with the operation, and shown with a paused queue.",
    ),
]

# Of lists.
Limit = Annotated[
    int, typer.Option("--limit", "-n", min=0, metavar="N", help="At most so many; 0: all.")
]
Samples = Annotated[
    int, typer.Option("--limit", "-n", min=0, metavar="N", help="End after so many; 0: never.")
]
Payloads = Annotated[bool, flag("--payloads", help="With payloads and results.")]
Words = Annotated[list[str] | None, typer.Argument(metavar="WORD", help=_lines(FILTER_HELP))]
EndStates = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="WORD", help="state:completed,cancelled,expired,stale,dead; default all but dead."
    ),
]
Selection = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID|WORD", help=_lines(f"Ids, or a filter. {FILTER_HELP}")),
]
Everything = Annotated[bool, flag("--all", help="All of them, without a filter.")]

# Arguments.
Prefix = Annotated[
    str,
    typer.Argument(
        metavar="PREFIX",
        help="Only queues whose names start with this.",
        autocompletion=completion.queues,
    ),
]
OneQueue = Annotated[
    str,
    typer.Argument(metavar="QUEUE", help="Only this queue.", autocompletion=completion.queues),
]
Settings = Annotated[list[str], typer.Argument(metavar="KEY=VALUE", help=_lines(settings.HELP))]
For = Annotated[
    float | None,
    typer.Option("--for", parser=span, metavar="TIME", help="How long: 90s, 5m, 1h30m."),
]
Force = Annotated[bool, flag("--force", help="Also with active jobs.")]
QueueName = Annotated[
    str, typer.Argument(metavar="QUEUE", help="The queue.", autocompletion=completion.queues)
]
GroupName = Annotated[
    str, typer.Argument(metavar="GROUP", help="The group.", autocompletion=completion.groups)
]
GroupPrefix = Annotated[
    str, typer.Argument(metavar="PREFIX", help="Only groups whose names start with this.")
]
GroupSettings = Annotated[
    list[str], typer.Argument(metavar="KEY=VALUE", help=_lines(settings.GROUP_HELP))
]
JobId = Annotated[int, typer.Argument(metavar="ID", help="The job.", parser=_id)]
JobOrQueue = Annotated[str, typer.Argument(metavar="ID|QUEUE", help="Its id, or its queue …")]
KeyArgument = Annotated[str | None, typer.Argument(metavar="KEY", help="… and its key.")]
RequiredKey = Annotated[str, typer.Argument(metavar="KEY", help="The key.")]
JobIds = Annotated[list[int], typer.Argument(metavar="ID", help="The jobs.", parser=_id)]

# Of push.
Payload = Annotated[
    str | None,
    typer.Argument(metavar="PAYLOAD", help="What the worker gets; `-` or a pipe: stdin."),
]
File = Annotated[
    Path | None,
    typer.Option("--file", "-f", metavar="PATH", help="Read the payload from this file."),
]
Lines = Annotated[bool, flag("--lines", "-l", help="One job per line of --file or stdin.")]
Count = Annotated[
    int, typer.Option("--count", min=1, metavar="N", help="Push the payload so many times.")
]
Key = Annotated[
    str | None,
    typer.Option(
        "--job-key",
        "--key",
        metavar="KEY",
        help="Idempotency key: pushed again within 24 h, it is the same job. "
        "With --lines or --count KEY-1, KEY-2 and so on.",
    ),
]
Wait = Annotated[
    float | None,
    typer.Option("--wait", parser=span, metavar="TIME", help="Wait so long for the result."),
]
Name = Annotated[
    str, typer.Option("--name", metavar="NAME", help="The kind of work; workers route on it.")
]
Priority = Annotated[int | None, typer.Option("--priority", metavar="N", help="Higher goes first.")]
Delay = Annotated[
    float | None,
    typer.Option("--delay", parser=span, metavar="TIME", help="Not before: 90s, 5m, 1h30m."),
]
At = Annotated[
    str,
    typer.Option(
        "--run-at", "--at", metavar="MOMENT", help="Not before: 2026-01-31T18:00, local time."
    ),
]
Lease = Annotated[
    float | None,
    typer.Option("--lease", parser=span, metavar="TIME", help="How long a worker may be silent."),
]
Lifo = Annotated[bool, flag("--lifo", help="Goes before all ready jobs of its priority and name.")]
Ttl = Annotated[
    float | None,
    typer.Option("--ttl", parser=span, metavar="TIME", help="Expires if it has not run by then."),
]
AttemptTimeout = Annotated[
    float | None,
    typer.Option(
        "--attempt-timeout", parser=span, metavar="TIME", help="What one attempt may take."
    ),
]
RetryUntil = Annotated[
    str, typer.Option("--retry-until", metavar="MOMENT", help="No retry after this moment.")
]
Headers = Annotated[
    list[str] | None, typer.Option("--header", "-H", metavar="KEY=VALUE", help="A header.")
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="A word to filter by; repeatable.")
]
GroupOption = Annotated[
    str | None,
    typer.Option("--group", metavar="GROUP", help="Its jobs run one at a time, in order."),
]
Sticky = Annotated[bool, flag("--sticky", help="Prefers the worker that had its group last.")]
Phases = Annotated[
    list[str] | None,
    typer.Option("--phase", metavar="NAME", help="A step of the job; repeatable, in order."),
]
ContentType = Annotated[
    str | None,
    typer.Option(
        "--content-type",
        metavar="TYPE",
        help="Unset: application/json for JSON objects and lists.",
    ),
]
Once = Annotated[bool, flag("--once", help="Never hand it out again, whatever happens to it.")]
MinWorkerVersion = Annotated[
    str | None,
    typer.Option(
        "--min-worker-version", metavar="VERSION", help="Only for workers this new, or newer."
    ),
]
Slots = Annotated[
    int | None,
    typer.Option("--slots", metavar="N", help="How many places of its worker's window it takes."),
]
Level = Annotated[
    str,
    typer.Option(
        "--ack-level",
        "--level",
        metavar="LEVEL",
        help="Answer when it is in memory, buffered or fsynced. Unset: fsynced, on disk.",
        autocompletion=completion.words("memory", "buffered", "fsynced"),
    ),
]

# Of waiting and watching.
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout",
        "-t",
        parser=span,
        metavar="TIME",
        show_default=False,
        help="Wait at most so long. Unset: 1m.",
    ),
]
WatchedQueues = Annotated[
    list[str] | None,
    typer.Argument(metavar="QUEUE", help="Only these queues.", autocompletion=completion.queues),
]
WatchedJob = Annotated[
    int | None, typer.Option("--job", parser=_id, metavar="ID", help="Only this job.")
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        "-k",
        metavar="KIND",
        help="Only this kind, such as `dead`; repeatable.",
        autocompletion=completion.event_kinds,
    ),
]
ResumeToken = Annotated[
    str, typer.Option("--resume", metavar="TOKEN", help="Go on after this token.")
]
Interval = Annotated[
    float,
    typer.Option(
        "--interval",
        "-i",
        parser=_interval,
        metavar="TIME",
        show_default=False,
        help="How often, at least 0.1 s apart. Unset: every second, 1s.",
    ),
]
MinLevel = Annotated[
    str,
    typer.Option(
        "--level",
        metavar="LEVEL",
        help="Only debug, info, warning or error, and above.",
        autocompletion=completion.words("debug", "info", "warning", "error"),
    ),
]
Follow = Annotated[bool, flag("--follow", "-f", help="Go on until the job has ended.")]
OlderThan = Annotated[
    float | None,
    typer.Option(
        "--older", parser=span, metavar="TIME", help="Only what ended at least so long ago."
    ),
]
