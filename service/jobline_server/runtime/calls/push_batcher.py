"""Pushes, and how small ones are decided together.

Where a crowd of callers was seen, a commit waits for more of them. Small pushes that wait for it
are decided as one when it is cut: they become one lot, one fact and one entry of the journal. If
that is refused, each is decided alone.

A transport may also deliver calls in bursts: those of one iteration of the loop are decided as one
at its end. Waiting for that costs an iteration, so calls that come one by one do not wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from jobline_server.engine.columns import LotColumns
from jobline_server.engine.commands import Push, Pushed, Refused
from jobline_server.engine.decide.outcomes import NO_OUTCOMES, Outcomes
from jobline_server.engine.decide.parents import has_parents
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import AckLevel
from jobline_server.runtime.calls.duplicates import notice_duplicates
from jobline_server.runtime.calls.payload_checks import PayloadChecks
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.outcomes import OutcomeLookup
from jobline_server.runtime.slots import ShardSlot

# A push with more bytes of payloads is decided at once: to put it together with others copies it.
SMALL_BYTES_MAX = 4 << 10
# Where fewer small pushes arrive in an iteration, the next ones are decided at once.
BURST_MIN = 4
# One of so many of those waits for the end of its iteration, to see whether bursts come again.
LOOK_EVERY = 64
# So many pushes become one lot at most.
TOGETHER_MAX = 256
# A push of so many jobs with ties is decided in another step than it is read in: where caches are
# cold, each takes 10 ms for a thousand jobs of as many groups.
APART_TIES = 200

# Levels that wait for a commit, unless the queue says another one.
_WAITING = (None, AckLevel.FSYNCED)

Caller = tuple[Push, asyncio.Future[Pushed]]

Arrived = dict[object, list[Caller]]
"""Pushes by what they have in common."""


def _goes_with_others(columns: LotColumns, count: int) -> bool:
    """Whether a push with these columns may become one lot with others: keys are decided alone."""
    return columns.job_keys is None and columns.bytes_of(0, count) <= SMALL_BYTES_MAX


class PushBatcher:
    """Decides pushes, alone or together."""

    def __init__(self, core: Core, outcomes: OutcomeLookup, checks: PayloadChecks) -> None:
        self._core = core
        self._outcomes = outcomes
        self.checks = checks
        self._loop = asyncio.get_running_loop()
        # Until the end of this iteration of the loop, and until the next commit is cut.
        self._arrived: Arrived = {}
        self._expected: Arrived = {}
        self._alone_left = 0
        core.commits.collect = self._decide_expected

    async def push(self, command: Push) -> Pushed:
        """Stores jobs and returns when the level is reached. A push whose keys are all known waits
        for the commit that may still be under way for them.
        """
        if self.checks.may_refuse(command.queue):
            await self.checks.check(command)
        columns = command.payloads.columns
        has_more = command.rows.payloads or command.request_id
        if has_more or len(command.payloads.block) > SMALL_BYTES_MAX:
            return await self._push_alone(command)
        if columns is not None and not _goes_with_others(columns, len(command.payloads)):
            return await self._push_alone(command)
        commits = self._core.commits
        if commits.has_crowd and command.level in _WAITING:
            commits.expect()
            together = self._expected
        elif self._alone_left:
            self._alone_left -= 1
            return await self._push_alone(command)
        else:
            together = self._arrived
            if not together:
                self._loop.call_soon(self._decide_arrived)
        future: asyncio.Future[Pushed] = self._loop.create_future()
        # What a lot needs its jobs to have in common; equal options are one object.
        common = (
            command.queue,
            id(command.options),
            command.level,
            command.run_at_ms,
            bool(command.calls),
            columns and columns.header_keys,
        )
        together.setdefault(common, []).append((command, future))
        try:
            return await future
        finally:
            # A refusal holds this frame, and those who came together hold the refusal: nothing of
            # it is to stay.
            del future, together

    async def _push_alone(self, command: Push) -> Pushed:
        rows = command.rows
        if len(rows.ties) >= APART_TIES:
            await asyncio.sleep(0)
        slot = self._core.slots.of_queue(command.queue)
        if (rows.ties or rows.parent_indexes) and has_parents(rows):
            pushed = await self._outcomes.decide(partial(self._decide_dependent, command))
        else:
            pushed = self._decide(slot, command)
        if pushed.level is AckLevel.FSYNCED:
            await self._core.commits.wait(slot)
        return pushed

    def _decide_dependent(self, command: Push, outcomes: Outcomes) -> Pushed:
        """Decides a push of jobs that depend on others."""
        slot = self._core.slots.of_queue(command.queue)
        pushed = self._decide(slot, command, outcomes)
        self._core.note_awaited(slot, [one for ties in command.rows.ties for one in ties.parents])
        return pushed

    def _decide(self, slot: ShardSlot, command: Push, outcomes: Outcomes = NO_OUTCOMES) -> Pushed:
        core = self._core
        core.check_accepting(slot, len(command.rows.payloads) + len(command.payloads) + 1)
        now = core.now()
        pushed = decide_push(slot.shard, now, command, outcomes)
        if pushed.exceptions and core.wants_events():
            notice_duplicates(slot.shard, now.wall_ms, command, pushed)
        core.after_decision(slot)
        return pushed

    def _decide_arrived(self) -> None:
        arrived, self._arrived = self._arrived, {}
        if sum(map(len, arrived.values())) < BURST_MIN:
            self._alone_left = LOOK_EVERY - 1
        self._decide_all(arrived)

    def _decide_expected(self) -> None:
        if self._expected:
            expected, self._expected = self._expected, {}
            self._decide_all(expected)

    def _decide_all(self, arrived: Arrived) -> None:
        for alike in arrived.values():
            callers = [caller for caller in alike if not caller[1].done()]
            for start in range(0, len(callers), TOGETHER_MAX):
                self._decide_together(callers[start : start + TOGETHER_MAX])

    def _decide_together(self, callers: Sequence[Caller]) -> None:
        commands = [command for command, _ in callers]
        together = commands[0]
        if len(commands) > 1:
            payloads = Payloads.joined([command.payloads for command in commands])
            calls = tuple(call for command in commands for call in command.calls)
            counts = tuple(map(len, (command.payloads for command in commands))) if calls else ()
            together = replace(together, payloads=payloads, calls=calls, call_jobs=counts)
        try:
            slot = self._core.slots.of_queue(together.queue)
            pushed = self._decide(slot, together)
        except Refused as refused:
            # Without its frames, which hold the callers and their pushes.
            refusal = refused.with_traceback(None)
        except Exception as error:  # noqa: BLE001  # nobody else would tell those who wait
            for _, future in callers:
                future.set_exception(error)
            return
        else:
            self._answer(callers, pushed, slot)
            return
        if len(callers) == 1:
            callers[0][1].set_exception(refusal)
            return
        for caller in callers:
            self._decide_together([caller])

    def _answer(self, callers: Sequence[Caller], pushed: Pushed, slot: ShardSlot) -> None:
        """Gives each caller its share of the ids, at once or after the commit."""
        answers: list[tuple[asyncio.Future[Pushed], Pushed]] = []
        first_id = pushed.first_id
        for command, future in callers:
            count = len(command.payloads)
            answers.append((future, Pushed(first_id, count, pushed.level)))
            first_id += count
        if pushed.level is AckLevel.FSYNCED:
            self._core.commits.resolve_after_commit(answers, slot)
            return
        for future, share in answers:
            future.set_result(share)
