"""Flows as tests push them: cut into parts as `rpc` cuts them, and decided as the runtime does it,
but in one step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.decide.awaiting import note_awaited
from jobline_server.engine.decide.flows import FlowChecks, checked, known_part
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobState, Now, shard_of
from jobline_server.runtime.calls.flows import FlowPart, with_request_id
from tests.pushed_rows import NewJob, rows_of

Placed = tuple[Shard, Now]


class FlowJob(NamedTuple):
    """A job of a flow. `children` are indexes of jobs before it, for which it waits."""

    queue: str
    job: NewJob
    children: tuple[int, ...] = ()


def parts_of(jobs: Sequence[FlowJob], request_id: str = "") -> list[FlowPart]:
    """The pushes of a flow: jobs of one queue together if they have as many below them."""
    heights: list[int] = []
    together: dict[tuple[int, str], list[int]] = {}
    for at, job in enumerate(jobs):
        heights.append(1 + max((heights[child] for child in job.children), default=-1))
        together.setdefault((heights[at], job.queue), []).append(at)
    parts: list[FlowPart] = []
    for (height, queue), places in sorted(together.items()):
        rows = rows_of(jobs[at].job for at in places)
        command = Push(queue, DEFAULT_OPTIONS, rows, Payloads.of([]), 0, AckLevel.FSYNCED)
        part = FlowPart(command, places, [jobs[at].children for at in places] if height else [])
        parts.append(with_request_id(part, request_id, len(parts), 7) if request_id else part)
    return parts


def decide_flow(parts: Sequence[FlowPart], place: Callable[[str], Placed]) -> list[int]:
    """Returns the ids of a flow; `place` says where a queue is. Raises `Refused`, and then nothing
    of it is decided.
    """
    placed = [place(part.command.queue) for part in parts]
    known = _known(parts, placed)
    if known:
        return known
    checks: dict[int, FlowChecks] = {}
    for part, (shard, _) in zip(parts, placed, strict=True):
        of_shard = checks.setdefault(shard.number, FlowChecks(shard.load))
        of_shard.check(shard, part.command, part.child_count())
    shards = {shard.number: (shard, now) for shard, now in placed}
    ids = [0] * sum(len(part.places) for part in parts)
    for part, (shard, now) in zip(parts, placed, strict=True):
        children = [tuple([ids[at] for at in own]) for own in part.children]
        of_all = {child: shards[shard_of(child)] for own in children for child in own}
        states = {
            child: owner.state_of(child) or JobState.CANCELLED
            for child, (owner, _) in of_all.items()
        }
        first_id = decide_push(shard, now, checked(part.command, children), states).first_id
        for at, index in enumerate(part.places):
            ids[index] = first_id + at
        for child, (owner, now_there) in of_all.items():
            is_awaited = shard.dependencies.awaited.find(child) is not None
            if owner is not shard and is_awaited and owner.state_of(child) is not None:
                note_awaited(owner, now_there, shard.number, [child])
    return ids


def _known(parts: Sequence[FlowPart], placed: Sequence[Placed]) -> list[int]:
    """The ids of the same flow if it came before."""
    records = [
        known_part(shard, now, part.command)
        for part, (shard, now) in zip(parts, placed, strict=True)
    ]
    ids: dict[int, int] = {}
    for part, record in zip(parts, records, strict=True):
        if record is not None:
            ids |= {index: record.first_id + at for at, index in enumerate(part.places)}
    if ids and None in records:
        raise Refused(RefusalKind.IDEMPOTENCY_MISMATCH, "it is known in part only")
    return [job_id for _, job_id in sorted(ids.items())]
