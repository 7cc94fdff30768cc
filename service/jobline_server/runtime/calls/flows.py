"""Pushes of flows: jobs of any queues and shards, all of them or none.

A flow is cut into parts, each a push of some jobs to one queue, children before their parents. They
are decided in slices, with the loop free in between, while no commit is cut: so one transaction
holds the whole flow, and a crash loses all of it. Whatever may refuse a part is checked before the
first one is decided. If deciding fails all the same, which only a mistake of ours can cause, the
server stops before anything of the flow is written.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.decide.flows import FlowChecks, checked, known_part
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.liveness import not_live
from jobline_server.engine.values import JobState, shard_of
from jobline_server.runtime.calls.payload_checks import PayloadChecks
from jobline_server.runtime.core import Core
from jobline_server.runtime.slots import ShardSlot

# Parts are read, checked and decided for so long in one step.
SLICE_SECONDS = 0.005
# Children of other shards that are noted there in one step.
AWAITED_AT_ONCE = 1_000


class FlowPart(NamedTuple):
    """A push of some jobs of a flow: which they are, and which of the flow each waits for, by
    index; `children` is empty if they wait for none. `on_failure`: their policies about these, as
    in `Ties`; empty if there are none.
    """

    command: Push
    places: Sequence[int]
    children: Sequence[Sequence[int]]
    on_failure: Sequence[bytes] = ()

    def child_count(self) -> int:
        """Returns how many jobs its jobs wait for together."""
        return sum(map(len, self.children))


@dataclass(slots=True)
class _Pace:
    """Frees the loop after each slice."""

    began: float

    async def rest(self) -> None:
        """Lets others go on if the slice is over."""
        if time.perf_counter() - self.began >= SLICE_SECONDS:
            await asyncio.sleep(0)
            self.began = time.perf_counter()


class FlowCalls:
    """What producers do with flows."""

    def __init__(self, core: Core, checks: PayloadChecks) -> None:
        self._core = core
        self._checks = checks
        self._pushing: set[asyncio.Task[list[int]]] = set()
        # One flow at a time waits for `Commits.exclusive`: a commit goes between two of them.
        self._turn = asyncio.Lock()

    async def push_flow(self, jobs: int, parts: Iterator[FlowPart | None]) -> list[int]:
        """Stores a flow of so many jobs; returns their ids in its order, once they are on disk.
        `parts` are read in slices, children before parents; None is a good moment to pause.

        Raises what reading the parts raises, and `Refused` with the kinds of `FlowChecks`,
        IDEMPOTENCY_MISMATCH, PAYLOAD_MISFIT, DISK_FULL or SHARD_UNAVAILABLE: nothing is stored.
        """
        pace = _Pace(time.perf_counter())
        read: list[FlowPart] = []
        for part in parts:
            if part is not None:
                read.append(part)
                if self._checks.may_refuse(part.command.queue):
                    await self._check_payloads(part)
            await pace.rest()
        slots = [self._core.slots.of_queue(part.command.queue) for part in read]
        self._check_accepting(read, slots)
        exclusive = self._core.commits.exclusive
        async with self._turn:
            # A caller that goes away while it waits leaves nothing …
            await exclusive.acquire()
            # … and one that goes away later no half of a flow: the task releases the lock.
            task = asyncio.create_task(self._push(jobs, read, slots))
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

    async def _push(
        self, jobs: int, parts: Sequence[FlowPart], slots: Sequence[ShardSlot]
    ) -> list[int]:
        """Decides all parts. `Commits.exclusive` is held, so no commit is cut meanwhile."""
        self._check_accepting(parts, slots)
        pace = _Pace(time.perf_counter())
        known = await self._known(jobs, parts, slots, pace)
        if known is not None:
            return known
        await self._check(parts, slots, pace)
        try:
            return await self._decide(jobs, parts, slots, pace)
        except BaseException as error:
            torn = RuntimeError("a flow was decided in part; nothing of it is written")
            torn.__cause__ = error
            self._core.commits.fail(torn)
            raise

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
        self, jobs: int, parts: Sequence[FlowPart], slots: Sequence[ShardSlot], pace: _Pace
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
        self, parts: Sequence[FlowPart], slots: Sequence[ShardSlot], pace: _Pace
    ) -> None:
        checks = FlowChecks(self._core.load)
        for part, slot in zip(parts, slots, strict=True):
            try:
                checks.check(slot.shard, part.command, part.child_count())
            except Refused as refused:
                raise placed(refused, part.places) from None
            await pace.rest()

    async def _decide(
        self, jobs: int, parts: Sequence[FlowPart], slots: Sequence[ShardSlot], pace: _Pace
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
