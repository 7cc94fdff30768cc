"""Checks a journal: lines in, broken guarantees out. Pure.

- G1: a job whose push was answered has ended, and ended well; none is lost.
- G6: a push that was repeated after a lost answer stored its jobs once.
- G8: no job was handed out twice under one delivery.
- G9: a job that completed was not handed out again: its last delivery is the one that completed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jobline_server.cli.demo.journal import What

Line = Mapping[str, Any]


@dataclass(slots=True)
class SortedJournal:
    """The lines of a journal, sorted by kind."""

    pushed: dict[int, str] = field(default_factory=dict)
    """Id → path, of all pushes that were answered."""
    handed: Counter[tuple[int, int]] = field(default_factory=Counter)
    """(id, delivery) → how often a worker got it."""
    holders: dict[tuple[int, int], str] = field(default_factory=dict)
    put_down: set[tuple[int, int]] = field(default_factory=set)
    """(id, delivery) that the worker finished or dropped."""
    ended: dict[int, Line] = field(default_factory=dict)
    killed: list[str] = field(default_factory=list)
    calls: dict[str, list[str]] = field(default_factory=dict)
    server_kills: int = 0


class Hands:
    """Tracks which worker holds which job, by the lines so far."""

    def __init__(self) -> None:
        self._jobs: dict[int, tuple[int, str]] = {}

    def take(self, line: Line) -> None:
        """Takes a line. A job that was handed out again belongs to the last worker."""
        what = line["what"]
        if what == What.HANDED:
            self._jobs.pop(line["id"], None)
            self._jobs[line["id"]] = line["delivery"], line["worker"]
        elif what in {What.FINISHED, What.DROPPED}:
            held = line["delivery"], line["worker"]
            if self._jobs.get(line["id"]) == held:
                del self._jobs[line["id"]]

    def holder(self) -> str | None:
        """Returns the worker that got a job last and still holds it, or None."""
        return next((worker for _, worker in reversed(self._jobs.values())), None)


def sorted_journal(lines: Iterable[Line]) -> SortedJournal:
    """Returns the lines of a journal, sorted."""
    journal = SortedJournal()
    for line in lines:
        what = line["what"]
        if what == What.PUSH_CALLED:
            journal.calls[line["request_id"]] = line["paths"]
        elif what == What.PUSH_ANSWERED:
            paths = journal.calls[line["request_id"]]
            journal.pushed |= {line["first_id"] + index: path for index, path in enumerate(paths)}
        elif what == What.HANDED:
            journal.handed[line["id"], line["delivery"]] += 1
            journal.holders[line["id"], line["delivery"]] = line["worker"]
        elif what in {What.FINISHED, What.DROPPED}:
            journal.put_down.add((line["id"], line["delivery"]))
        elif what == What.ENDED:
            journal.ended[line["id"]] = line
        elif what == What.WORKER_KILLED:
            journal.killed.append(line["worker"])
        elif what == What.SERVER_KILLED:
            journal.server_kills += 1
    return journal


def broken_guarantees(journal: SortedJournal) -> list[str]:
    """Returns a sentence for each guarantee that the journal shows broken."""
    return [
        *_lost(journal),
        *_stored_twice(journal),
        *_handed_twice(journal),
        *_handed_after_end(journal),
    ]


def taken_over(journal: SortedJournal) -> int:
    """Returns how many jobs a killed worker had begun and another completed."""
    return sum(
        1
        for (job_id, delivery), worker in journal.holders.items()
        if worker in journal.killed
        and (job_id, delivery) not in journal.put_down
        and journal.ended.get(job_id, {}).get("worker") not in {None, *journal.killed}
    )


def _lost(journal: SortedJournal) -> list[str]:
    problems = []
    for job_id, path in journal.pushed.items():
        end = journal.ended.get(job_id)
        if end is None:
            problems.append(f"G1: job {job_id} ({path}) was acknowledged and never ended")
        elif end["state"] != "COMPLETED":
            problems.append(f"G1: job {job_id} ({path}) ended as {end['state']}: {end['error']}")
    return problems


def _stored_twice(journal: SortedJournal) -> list[str]:
    asked = Counter(path for paths in journal.calls.values() for path in paths)
    stored = Counter(journal.pushed.values())
    known = set(journal.pushed)
    problems = [
        f"G6: {path} was pushed {asked[path]} times and stored {count} times"
        for path, count in stored.items()
        if count > asked[path]
    ]
    strangers = {job_id for job_id, _ in journal.handed} - known
    return problems + [
        f"G6: job {job_id} was handed out and never answered" for job_id in strangers
    ]


def _handed_twice(journal: SortedJournal) -> list[str]:
    return [
        f"G8: job {job_id} was handed out {count} times under delivery {delivery}"
        for (job_id, delivery), count in journal.handed.items()
        if count > 1
    ]


def _handed_after_end(journal: SortedJournal) -> list[str]:
    newest: dict[int, int] = defaultdict(int)
    for job_id, delivery in journal.handed:
        newest[job_id] = max(newest[job_id], delivery)
    return [
        f"G9: job {job_id} completed under delivery {end['delivery']} and was handed out again "
        f"under {newest[job_id]}"
        for job_id, end in journal.ended.items()
        if end["state"] == "COMPLETED" and end["delivery"] != newest[job_id]
    ]
