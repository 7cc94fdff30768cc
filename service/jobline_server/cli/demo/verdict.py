"""What a journal proves: pure, lines in, broken promises out.

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
class Told:
    """A journal by what it tells."""

    pushed: dict[int, str] = field(default_factory=dict)
    """Id → path, of every push that was answered."""
    handed: Counter[tuple[int, int]] = field(default_factory=Counter)
    """(id, delivery) → how often a worker was given it."""
    holders: dict[tuple[int, int], str] = field(default_factory=dict)
    put_down: set[tuple[int, int]] = field(default_factory=set)
    """(id, delivery) that its worker finished or dropped."""
    ended: dict[int, Line] = field(default_factory=dict)
    killed: list[str] = field(default_factory=list)
    calls: dict[str, list[str]] = field(default_factory=dict)
    server_kills: int = 0


class Hands:
    """Who has which job in hand, by the lines so far."""

    def __init__(self) -> None:
        self._jobs: dict[int, tuple[int, str]] = {}

    def take(self, line: Line) -> None:
        """Takes a line. A job that was handed out again is with the last who got it."""
        what = line["what"]
        if what == What.HANDED:
            self._jobs.pop(line["id"], None)
            self._jobs[line["id"]] = line["delivery"], line["worker"]
        elif what in {What.FINISHED, What.DROPPED}:
            held = line["delivery"], line["worker"]
            if self._jobs.get(line["id"]) == held:
                del self._jobs[line["id"]]

    def holder(self) -> str | None:
        """The worker that was handed a job last and still has it; None if nobody has one."""
        return next((worker for _, worker in reversed(self._jobs.values())), None)


def told_by(lines: Iterable[Line]) -> Told:
    """Sorts the lines of a journal."""
    told = Told()
    for line in lines:
        what = line["what"]
        if what == What.PUSH_CALLED:
            told.calls[line["request_id"]] = line["paths"]
        elif what == What.PUSH_ANSWERED:
            paths = told.calls[line["request_id"]]
            told.pushed |= {line["first_id"] + index: path for index, path in enumerate(paths)}
        elif what == What.HANDED:
            told.handed[line["id"], line["delivery"]] += 1
            told.holders[line["id"], line["delivery"]] = line["worker"]
        elif what in {What.FINISHED, What.DROPPED}:
            told.put_down.add((line["id"], line["delivery"]))
        elif what == What.ENDED:
            told.ended[line["id"]] = line
        elif what == What.WORKER_KILLED:
            told.killed.append(line["worker"])
        elif what == What.SERVER_KILLED:
            told.server_kills += 1
    return told


def broken_promises(told: Told) -> list[str]:
    """Every promise that the journal shows broken, as a sentence."""
    return [*_lost(told), *_stored_twice(told), *_handed_twice(told), *_handed_after_end(told)]


def taken_over(told: Told) -> int:
    """Jobs that a killed worker had begun, and that another worker did."""
    return sum(
        1
        for (job_id, delivery), worker in told.holders.items()
        if worker in told.killed
        and (job_id, delivery) not in told.put_down
        and told.ended.get(job_id, {}).get("worker") not in {None, *told.killed}
    )


def _lost(told: Told) -> list[str]:
    problems = []
    for job_id, path in told.pushed.items():
        end = told.ended.get(job_id)
        if end is None:
            problems.append(f"G1: job {job_id} ({path}) was acknowledged and never ended")
        elif end["state"] != "COMPLETED":
            problems.append(f"G1: job {job_id} ({path}) ended as {end['state']}: {end['error']}")
    return problems


def _stored_twice(told: Told) -> list[str]:
    asked = Counter(path for paths in told.calls.values() for path in paths)
    stored = Counter(told.pushed.values())
    known = set(told.pushed)
    problems = [
        f"G6: {path} was pushed {asked[path]} times and stored {count} times"
        for path, count in stored.items()
        if count > asked[path]
    ]
    strangers = {job_id for job_id, _ in told.handed} - known
    return problems + [
        f"G6: job {job_id} was handed out and never answered" for job_id in strangers
    ]


def _handed_twice(told: Told) -> list[str]:
    return [
        f"G8: job {job_id} was handed out {count} times under delivery {delivery}"
        for (job_id, delivery), count in told.handed.items()
        if count > 1
    ]


def _handed_after_end(told: Told) -> list[str]:
    newest: dict[int, int] = defaultdict(int)
    for job_id, delivery in told.handed:
        newest[job_id] = max(newest[job_id], delivery)
    return [
        f"G9: job {job_id} completed under delivery {end['delivery']} and was handed out again "
        f"under {newest[job_id]}"
        for job_id, end in told.ended.items()
        if end["state"] == "COMPLETED" and end["delivery"] != newest[job_id]
    ]
