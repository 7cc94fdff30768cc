"""Pushes of flows: jobs of any queues and shards, all of them or none.

A flow is cut into parts, each a push of some jobs to one queue, children before their parents. They
are decided in slices, with the loop free in between, while no commit is cut: so one transaction
holds the whole flow, and a crash loses all of it. Whatever may refuse a part is checked before the
first one is decided. If deciding fails all the same, which only a mistake of ours can cause, the
server stops before anything of the flow is written.

A flow below a job that a worker has ends the lease of that job in the step between the checks and
the first part, and has it wait for the roots after the last one: all in the same transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.decide.add_children import (
    FlowParent,
    decide_add_children,
    decide_set_aside,
    lease_lost,
)
from jobline_server.engine.decide.flows import FlowChecks, checked, known_part
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.liveness import not_live
from jobline_server.engine.values import JobState, shard_of
from jobline_server.runtime.calls.payload_checks import PayloadChecks
from jobline_server.runtime.core import Core
from jobline_server.runtime.pace import Pace
from jobline_server.runtime.slots import ShardSlot

# Children of other shards that are noted there in one step.
AWAITED_AT_ONCE = 1_000


class FlowPart(NamedTuple):
    """A push of some jobs of a flow: which they are, and which of the flow each waits for, by
    index; `children` is empty if they wait for none. `on_failure`: their policies about these, as
    in `Ties`; `about`: those that are about them. Both are empty if no job of the flow has one.
    """

    command: Push
    places: Sequence[int]
    children: Sequence[Sequence[int]]
    on_failure: Sequence[bytes] = ()
    about: bytes = b""

    def child_count(self) -> int:
        """Returns how many jobs its jobs wait for together."""
        return sum(map(len, self.children))


class _Below(NamedTuple):
    """The job that is to wait for a flow, its slot, and the indexes of the jobs it waits for."""

    parent: FlowParent
    slot: ShardSlot
    roots: Sequence[int]


class FlowCalls:
    """What producers do with flows."""

    def __init__(self, core: Core, checks: PayloadChecks) -> None:
        self._core = core
        self._checks = checks
        self._pushing: set[asyncio.Task[list[int]]] = set()
        # One flow at a time waits for `Commits.exclusive`: a commit goes between two of them.
        self._turn = asyncio.Lock()

    async def push_flow(
        self, jobs: int, parts: Iterator[FlowPart | None], parent: FlowParent | None = None
    ) -> list[int]:
        """Stores a flow of so many jobs; returns their ids in its order, once they are on disk.
        `parts` are read in slices, children before parents; None is a good moment to pause. With
        `parent`, a job that a worker has waits for its roots.

        Raises what reading the parts raises, and `Refused` with the kinds of `FlowChecks` and
        `decide_set_aside`, IDEMPOTENCY_MISMATCH, PAYLOAD_MISFIT, DISK_FULL or SHARD_UNAVAILABLE:
        nothing is stored.
        """
        pace = Pace()
        read: list[FlowPart] = []
        for part in parts:
            if part is not None:
                read.append(part)
                if self._checks.may_refuse(part.command.queue):
                    await self._check_payloads(part)
            await pace.rest()
        slots = [self._core.slots.of_queue(part.command.queue) for part in read]
        self._check_accepting(read, slots)
        below = None if parent is None else self._below(parent, jobs, read)
        exclusive = self._core.commits.exclusive
        async with self._turn:
            # A caller that goes away while it waits leaves nothing …
            await exclusive.acquire()
            # … and one that goes away later no half of a flow: the task releases the lock.
            task = asyncio.create_task(self._push(jobs, read, slots, below))
            task.add_done_callback(lambda _: exclusive.release())
            self._pushing.add(task)
            task.add_done_callback(self._pushing.discard)
            try:
                ids = await asyncio.shield(task)
            finally:
                # A refusal holds this frame, and the task the refusal: nothing of it is to stay.
                del task
        await self._core.commits.wait()
        return ids

    async def _check_payloads(self, part: FlowPart) -> None:
        try:
            await self._checks.check(part.command)
        except Refused as refused:
            raise placed(refused, part.places) from None

    def _below(self, parent: FlowParent, jobs: int, parts: Sequence[FlowPart]) -> _Below:
        slot = self._core.slots.of_id(parent.id)
        if slot is None:
            raise lease_lost(parent)
        children = {child for part in parts for own in part.children for child in own}
        roots = [at for at in range(jobs) if at not in children]
        about = {
            at: policy
            for part in parts
            for at, policy in zip(part.places, part.about, strict=False)
        }
        on_failure = bytes([about[at] for at in roots]) if about else b""
        return _Below(parent._replace(on_failure=on_failure), slot, roots)

    async def _push(
        self,
        jobs: int,
        parts: Sequence[FlowPart],
        slots: Sequence[ShardSlot],
        below: _Below | None,
    ) -> list[int]:
        """Decides all parts. `Commits.exclusive` is held, so no commit is cut meanwhile."""
        self._check_accepting(parts, slots)
        pace = Pace()
        known = await self._known(jobs, parts, slots, pace)
        if known is not None:
            return known
        await self._check(parts, slots, pace, 0 if below is None else len(below.roots))
        if below is not None:
            # The lease may have ended during the checks. From here on nothing is refused.
            self._set_aside(below)
        try:
            ids = await self._decide(jobs, parts, slots, pace)
            if below is not None:
                self._add_children(below, [ids[at] for at in below.roots])
        except BaseException as error:
            torn = RuntimeError("a flow was decided in part; nothing of it is written")
            torn.__cause__ = error
            self._core.commits.fail(torn)
            raise
        return ids

    def _set_aside(self, below: _Below) -> None:
        core, slot = self._core, below.slot
        if slot.is_closed:
            raise core.slots.refusal(slot.number)
        decide_set_aside(slot.shard, core.now(), below.parent, len(below.roots))

    def _add_children(self, below: _Below, children: Sequence[int]) -> None:
        core, slot = self._core, below.slot
        over = self._over(children)
        left = decide_add_children(slot.shard, core.now(), below.parent, children, over)
        core.note_awaited(slot, left)
        core.after_decision(slot)

    def _check_accepting(self, parts: Sequence[FlowPart], slots: Sequence[ShardSlot]) -> None:
        counts: dict[ShardSlot, int] = {}
        for part, slot in zip(parts, slots, strict=True):
            # One more for a queue that it creates.
            counts[slot] = counts.get(slot, 0) + len(part.places) + 1
        for slot, count in counts.items():
            if slot.is_closed:
                raise self._core.slots.refusal(slot.number)
            self._core.check_accepting(slot, count)

    async def _known(
        self, jobs: int, parts: Sequence[FlowPart], slots: Sequence[ShardSlot], pace: Pace
    ) -> list[int] | None:
        """Returns the ids of the same flow if it came before, None if it did not."""
        ids = [0] * jobs
        missing = 0
        now = self._core.now()
        for part, slot in zip(parts, slots, strict=True):
            record = known_part(slot.shard, now, part.command)
            if record is None:
                missing += 1
            else:
                for at, place in enumerate(part.places):
                    ids[place] = record.first_id + at
            await pace.rest()
        if 0 < missing < len(parts):
            message = "the flow with this request_id is known in part only: its time is over"
            raise Refused(RefusalKind.IDEMPOTENCY_MISMATCH, message, field="request_id")
        return None if missing else ids

    async def _check(
        self, parts: Sequence[FlowPart], slots: Sequence[ShardSlot], pace: Pace, roots: int
    ) -> None:
        checks = FlowChecks(self._core.load)
        checks.check_children(roots)
        for part, slot in zip(parts, slots, strict=True):
            try:
                checks.check(slot.shard, part.command, part.child_count())
            except Refused as refused:
                raise placed(refused, part.places) from None
            await pace.rest()

    async def _decide(
        self, jobs: int, parts: Sequence[FlowPart], slots: Sequence[ShardSlot], pace: Pace
    ) -> list[int]:
        core, ids = self._core, [0] * jobs
        for part, slot in zip(parts, slots, strict=True):
            children = [tuple([ids[at] for at in own]) for own in part.children]
            of_all = list(dict.fromkeys(chain.from_iterable(children)))
            command = checked(part.command, children, part.on_failure)
            pushed = decide_push(slot.shard, core.now(), command, self._over(of_all))
            for at, place in enumerate(part.places):
                ids[place] = pushed.first_id + at
            core.after_decision(slot)
            await pace.rest()
            # A child that ends before the other shard knows of it is looked up.
            for low in range(0, len(of_all), AWAITED_AT_ONCE):
                core.note_awaited(slot, of_all[low : low + AWAITED_AT_ONCE])
                await pace.rest()
        return ids

    def _over(self, children: Sequence[int]) -> dict[int, JobState]:
        """Returns those of the jobs that are over, which were decided just now. None was handed out
        yet; it was cancelled, or ended in another way that comes to the same.
        """
        by_shard: dict[int, list[int]] = {}
        for child in children:
            by_shard.setdefault(shard_of(child), []).append(child)
        over: list[int] = []
        for own in by_shard.values():
            slot = self._core.slots.find_by_id(own[0])
            over += own if slot is None else not_live(slot.shard, own)
        return dict.fromkeys(over, JobState.CANCELLED)


def placed(refused: Refused, places: Sequence[int]) -> Refused:
    """Returns the refusal of a part with the field that the flow has in that place."""
    name, dot, rest = refused.field.partition(".")
    for prefix in ("jobs[", "payloads["):
        if name.startswith(prefix):
            at = int(name.removeprefix(prefix).removesuffix("]"))
            refused.field = f"jobs[{places[at]}].job{dot}{rest}"
            return refused
    if name == "queue":
        refused.field = f"jobs[{places[0]}].queue"
    elif name == "options":
        # What all jobs of a part share stands in each of them.
        refused.field = f"jobs[{places[0]}].job.{refused.field}"
    return refused


def with_request_id(part: FlowPart, request_id: str, number: int, digest: int) -> FlowPart:
    """Returns a part that is known by the request id of its flow and its own number."""
    # No request id of a user has a NUL.
    own = f"{request_id}\0{number}".encode()
    command = replace(part.command, request_id=own, request_digest=digest)
    return part._replace(command=command)
