"""Verbs that act on many jobs: count first, ask, act in slices, report the outcome.

Ids go in slices of what one call takes, with a bar; a filter is one call, which the server carries
out in slices of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import typer

from jobline._job_values import BulkResult
from jobline.cli.command import Cli
from jobline.cli.exit_codes import Exit
from jobline.cli.output import counted
from jobline.cli.selection import Chosen

# The protocol takes 10,000 ids a call; smaller slices make the bar move.
SLICE = 1_000
_SKIPPED_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Verb:
    """What is done to jobs: `cancel` is the verb, `cancelled` what they are then."""

    name: str
    done: str
    call: Callable[..., BulkResult]
    destructive: bool = False


@dataclass(slots=True)
class Tally:
    """What became of them, over all slices."""

    count: int = 0
    requested: int = 0
    skipped: list[int] = field(default_factory=list)
    not_found: list[int] = field(default_factory=list)
    operations: list[str] = field(default_factory=list)

    def add(self, answer: BulkResult) -> None:
        """Counts one answer in."""
        self.count += answer.count
        self.requested += answer.requested
        self.skipped += answer.skipped_ids
        self.not_found += answer.not_found_ids
        if answer.operation_id:
            self.operations.append(answer.operation_id)

    @property
    def total(self) -> int:
        """How many it was done to, or would be."""
        return self.count + self.requested

    @property
    def code(self) -> Exit:
        """How the command ends."""
        if self.not_found:
            return Exit.NOT_FOUND
        return Exit.REFUSED if self.skipped else Exit.OK


def carry_out(
    cli: Cli, verb: Verb, chosen: Chosen, *, dry_run: bool, yes: bool, reason: str
) -> None:
    """Does it, or counts what it would do, and prints the tally. Ends with 3 if a job is not there,
    with 5 if one is in a state in which it cannot be done.
    """
    if verb.destructive and not dry_run and not yes:
        tally = _run(cli, verb, chosen, dry_run=True, reason=reason)
        if tally.total:
            cli.confirm(_question(verb, tally), yes=yes)
            tally = _run(cli, verb, chosen, dry_run=False, reason=reason)
    else:
        tally = _run(cli, verb, chosen, dry_run=dry_run, reason=reason)
    _show(cli, verb, tally, dry_run=dry_run)
    if tally.code:
        raise typer.Exit(tally.code)


def _question(verb: Verb, found: Tally) -> str:
    """What is about to be done, to how many."""
    question = f"{verb.name.capitalize()} {counted(found.total, 'job')}"
    if found.requested:
        question += f", {found.requested:,} of them active"
    if found.skipped:
        question += f", and leave {len(found.skipped):,} as they are"
    return question + "?"


def _run(cli: Cli, verb: Verb, chosen: Chosen, *, dry_run: bool, reason: str) -> Tally:
    tally = Tally()
    keywords: dict[str, Any] = {"dry_run": dry_run, "reason": reason}
    if not chosen.ids:
        where = chosen.where
        with cli.out.progress(verb.name, None):
            which = () if where is None else (where,)
            tally.add(verb.call(*which, everything=where is None, **keywords))
        return tally
    with cli.out.progress(verb.name, len(chosen.ids)) as advance:
        for start in range(0, len(chosen.ids), SLICE):
            ids = chosen.ids[start : start + SLICE]
            tally.add(verb.call(*ids, **keywords))
            advance(len(ids))
    return tally


def _show(cli: Cli, verb: Verb, tally: Tally, *, dry_run: bool) -> None:
    value = {
        "count": tally.count,
        "requested": tally.requested,
        "skipped_ids": tally.skipped,
        "not_found_ids": tally.not_found,
        "operation_ids": tally.operations,
        "dry_run": dry_run,
    }
    would = "would be " if dry_run else ""
    text = f"{counted(tally.count, 'job')} {would}{verb.done}"
    if tally.requested:
        text += f"; their workers {would or 'are '}told to stop: {tally.requested:,} more, active"
    missing = set(tally.not_found)
    left = [job_id for job_id in tally.skipped if job_id not in missing]
    for what, ids in (("left as they are", left), ("no such job", tally.not_found)):
        if ids:
            shown = " ".join(map(str, ids[:_SKIPPED_SHOWN]))
            more = " …" if len(ids) > _SKIPPED_SHOWN else ""
            text += f"\n{what}: {shown}{more}" + (f" ({len(ids):,} in all)" if more else "")
    cli.out.document(value, text)
