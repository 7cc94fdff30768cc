"""Options of `jobline push` about retries, and about how long an ended job is kept."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from jobline._option_parts import Backoff, Retention
from jobline.cli.exit_codes import UsageError
from jobline.cli.settings import part_of

MaxAttempts = Annotated[
    int | None,
    typer.Option("--max-attempts", metavar="N", help="Failures before it is dead; 0: no limit."),
]
MaxStalls = Annotated[
    int | None,
    typer.Option("--max-stalls", metavar="N", help="Lost leases that are forgiven."),
]
BackoffWords = Annotated[
    str,
    typer.Option(
        "--backoff",
        metavar="WORDS",
        help="Pauses between attempts: 1s,10s,5m one by one; or kind=fixed,base=5s, with "
        "max_delay and jitter (0 … 1) too.",
    ),
]
RetentionWords = Annotated[
    str,
    typer.Option(
        "--retention",
        metavar="WORDS",
        help="How long it is kept when it has ended: age=2d,count=100; or "
        "remove_on_complete=true, remove_on_fail=true.",
    ),
]


def backoff_of(words: str) -> Backoff | None:
    """Returns the backoff that words say: pauses, or KEY=VALUE of a queue's `backoff`. Raises
    UsageError.
    """
    if not words:
        return None
    pairs = words.split(",") if "=" in words else [f"delays={words}"]
    return Backoff(**_said("--backoff", "backoff", pairs))


def retention_of(words: str) -> Retention | None:
    """Returns the retention that words say. Raises UsageError."""
    if not words:
        return None
    return Retention(**_said("--retention", "retention", words.split(",")))


def _said(flag: str, part: str, pairs: list[str]) -> dict[str, Any]:
    try:
        return part_of(part, pairs)
    except UsageError as mistake:
        raise UsageError(f"{flag}: {mistake}") from None
