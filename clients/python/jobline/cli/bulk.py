"""Verbs that act on many jobs: count first, ask, do it in slices, say what became of them.

Ids go in slices of what one call takes, with a bar; a filter is one call, which the server carries
out in slices of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from jobline.cli.command import Cli
from jobline.cli.output import counted
from jobline.cli.selection import Chosen

# The protocol takes 10,000 ids a call; smaller slices make the bar move.
SLICE = 1_000
_SKIPPED_SHOWN = 10


class Answer(Protocol):
    """What the calls on many jobs have in common."""

    @property
    def count(self) -> int:
        """How many it was done to."""

    @property
    def operation_id(self) -> str:
        """Names the operation in the log of the server."""

    @property
    def skipped_ids(self) -> Sequence[int]:
        """Ids that were asked for and left as they are."""


@dataclass(frozen=True, slots=True)
class Verb:
    """What is done to jobs: `cancel` is the verb, `cancelled` what they are then."""

    name: str
    done: str
    call: Callable[..., Answer]
    destructive: bool = False


@dataclass(slots=True)
class Tally:
    """What became of them, over all slices."""

    count: int = 0
    requested: int = 0
    skipped: list[int] | None = None
    operations: list[str] | None = None

    def add(self, answer: Answer) -> None:
        """Counts one answer in."""
        self.count += answer.count
        self.requested += getattr(answer, "requested", 0)
        self.skipped = [*(self.skipped or []), *answer.skipped_ids]
        if answer.operation_id:
            self.operations = [*(self.operations or []), answer.operation_id]


def carry_out(
    cli: Cli, verb: Verb, chosen: Chosen, *, dry_run: bool, yes: bool, reason: str
) -> Tally:
    """Does it, or counts what it would do, and prints the tally."""
    if verb.destructive and not dry_run and not yes:
        found = _run(cli, verb, chosen, dry_run=True, reason=reason)
        total = found.count + found.requested
        cli.confirm(f"{verb.name.capitalize()} {counted(total, 'job')}?", yes=yes)
    tally = _run(cli, verb, chosen, dry_run=dry_run, reason=reason)
    _show(cli, verb, tally, dry_run=dry_run)
    return tally


def _run(cli: Cli, verb: Verb, chosen: Chosen, *, dry_run: bool, reason: str) -> Tally:
    tally = Tally()
    said: dict[str, Any] = {"dry_run": dry_run, "reason": reason}
    if not chosen.ids:
        where = chosen.where
        with cli.out.progress(verb.name, None):
            tally.add(verb.call(where=where, everything=where is None, **said))
        return tally
    with cli.out.progress(verb.name, len(chosen.ids)) as advance:
        for start in range(0, len(chosen.ids), SLICE):
            ids = chosen.ids[start : start + SLICE]
            tally.add(verb.call(*ids, **said))
            advance(len(ids))
    return tally


def _show(cli: Cli, verb: Verb, tally: Tally, *, dry_run: bool) -> None:
    skipped, operations = tally.skipped or [], tally.operations or []
    value = {
        "count": tally.count,
        "requested": tally.requested,
        "skipped_ids": skipped,
        "operation_ids": operations,
        "dry_run": dry_run,
    }
    would = "would be " if dry_run else ""
    text = f"{counted(tally.count, 'job')} {would}{verb.done}"
    if tally.requested:
        text += f"; their workers {would or 'are '}told to stop: {tally.requested:,} more, active"
    if skipped:
        shown = " ".join(map(str, skipped[:_SKIPPED_SHOWN]))
        more = " …" if len(skipped) > _SKIPPED_SHOWN else ""
        text += f"\nleft as they are: {len(skipped):,} ({shown}{more})"
    cli.out.document(value, text)
