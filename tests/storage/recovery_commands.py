"""Everything that can be asked of a shard, as rules of a Hypothesis state machine.

What is asked is mostly valid, and often not: old leases, jobs that are gone, keys that are known.
The machine that inherits these rules adds time and what happens to storage
(`test_recovery_machine`).
"""

from __future__ import annotations

from itertools import count

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from jobline_server.engine.commands import ExtendItem, FailItem, Leased, Push, Refused, ReleaseItem
from jobline_server.engine.decide.ack import decide_ack
from jobline_server.engine.decide.admin import (
    decide_age_out,
    decide_cancel,
    decide_delete_ended,
    decide_delete_waiting,
    decide_promote,
    decide_retry,
)
from jobline_server.engine.decide.lease import decide_lease
from jobline_server.engine.decide.once import decide_abandon
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.queues import (
    decide_delete_queue,
    decide_pause_queue,
    decide_resume_queue,
    decide_update_queue,
)
from jobline_server.engine.decide.settle import decide_extend, decide_fail, decide_release
from jobline_server.engine.holder import Holder
from jobline_server.engine.job_columns import NO_ROWS
from jobline_server.engine.records import JobRecord
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import (
    FailAction,
    JobError,
    JobState,
    Now,
)
from tests.pushed_payloads import with_columns
from tests.pushed_rows import NewJob, rows_of, with_call
from tests.storage.checkpointing import PAYLOADS
from tests.storage.once_watch import OnceWatch
from tests.storage.recovery_values import (
    OPTIONS,
    SETTINGS,
    delays,
    levels,
    lots,
    new_jobs,
    options,
    picks,
    queues,
    reported,
    request_ids,
    sessions,
)
from tests.storage.recovery_world import World


class CommandRules(RuleBasedStateMachine):
    """Producers, workers and operators."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.given: list[tuple[int, int]] = []
        self.ever_given: set[tuple[int, int]] = set()
        self.highest_id, self.numbers = 0, count()
        self.once = OnceWatch()

    @property
    def shard(self) -> Shard:
        return self.world.shard

    @property
    def now(self) -> Now:
        return self.world.now

    # Producers.

    @rule(
        queue=queues,
        own=options,
        payloads=lots.flatmap(with_columns),
        delay=delays,
        level=levels,
        request_id=request_ids,
    )
    def push_payloads(self, queue, own, payloads, delay, level, request_id):
        run_at_ms = self.now.wall_ms + delay if delay else 0
        push = Push(queue, own, NO_ROWS, payloads, run_at_ms, level, True, request_id, 7)
        self._push(push)

    @rule(
        queue=queues,
        jobs=new_jobs,
        level=levels,
        plain=st.integers(0, 2).map(lambda count: [b"y"] * count).flatmap(with_columns),
        request_id=request_ids,
    )
    def push_jobs(self, queue, jobs, level, plain, request_id):
        now_ms = self.now.wall_ms
        rows = rows_of(
            NewJob(PAYLOADS[key], own, key, now_ms + delay if delay else 0)
            for own, key, delay in jobs
        )
        self._push(Push(queue, OPTIONS[0], rows, plain, 0, level, True, request_id, 7))

    def _push(self, push: Push) -> None:
        try:
            pushed = decide_push(self.shard, self.now, with_call(push, next(self.numbers)))
        except Refused:
            return
        if pushed.count and not push.request_id:
            assert pushed.first_id > self.highest_id, "an id was given twice"
        self.highest_id = max(self.highest_id, pushed.first_id + pushed.count - 1)

    # Workers.

    @rule(
        queue=queues,
        session=sessions,
        max_jobs=st.integers(1, 6),
        max_bytes=st.sampled_from([3, 10_000, 10_000]),
        names=st.sampled_from([None, None, None, frozenset({"mail"}), frozenset({"mail", "bulk"})]),
        lease_ms=st.sampled_from([0, 0, 3_000]),
        committed=st.sampled_from([True, True, True, False]),
    )
    def lease(self, queue, session, max_jobs, max_bytes, names, lease_ms, committed):
        if committed:
            self.world.commit()
        known = self.shard.queues.get(queue)
        if known is None:
            return
        holder = self._holder(session)
        leased = decide_lease(
            self.shard,
            self.now,
            known,
            holder,
            max_jobs=max_jobs,
            max_bytes=max_bytes,
            names=names,
            lease_ms=lease_ms,
        )
        self.shard.clocks.arm(holder)
        self._check_leased(leased)

    def _holder(self, session: str) -> Holder:
        if not session:
            return Holder("puller", "")
        holder = self.shard.clocks.holder_of(session, f"worker {session}")
        if holder.disconnected_ms is not None:
            self.shard.clocks.resume(self.now, holder)
        return holder

    def _check_leased(self, leased: Leased) -> None:
        """G3: what goes out is on disk. G7, G10: no counter is given twice, whatever crashes."""
        handed = [(job.id, job.delivery) for job in leased.jobs]
        for run in leased.runs:
            handed += [(run.first_id + index, run.delivery) for index in range(len(run.payloads))]
        for job_id, delivery in handed:
            item = self.shard.jobs.get(job_id) or self.shard.lots.find(job_id)
            assert item is not None
            assert item.offset <= self.shard.committed, "handed out before it was on disk"
            assert (job_id, delivery) not in self.ever_given, "a counter was given twice"
        self.once.leased(leased, self.shard.next_offset)
        self.ever_given.update(handed)
        self.given = (self.given + handed)[-40:]

    def _leases(self, picked: list[int]) -> list[tuple[int, int]]:
        """Leases in any order, perhaps twice: valid ones, and some that were given lately."""
        pool = [*self._valid(), *self.given[-3:]]
        return [pool[pick] for pick in picked if pick < len(pool)]

    def _valid(self) -> list[tuple[int, int]]:
        jobs = self.shard.jobs.values()
        found = [(job.id, job.delivery) for job in jobs if job.state is JobState.ACTIVE]
        for lot in self.shard.lots.lots.values():
            for lease in lot.leases:
                found += [(lot.first_id + i, lease.delivery) for i in lease.open_indexes()]
        return found

    @rule(picked=picks, results=st.booleans())
    def ack_any(self, picked, results):
        leases = self._leases(picked)
        ids = [job_id for job_id, _ in leases]
        returned = dict.fromkeys(ids[::2], b"done") if results else {}
        decide_ack(self.shard, self.now, ids, [delivery for _, delivery in leases], returned)

    @rule(count=st.integers(1, 10))
    def ack_in_order(self, count):
        leases = sorted(self._valid())[-count:]
        decide_ack(self.shard, self.now, [i for i, _ in leases], [d for _, d in leases], {})

    @rule(
        picked=picks,
        then=st.sampled_from([FailAction.RETRY, FailAction.RETRY, *FailAction]),
        retry_after_ms=st.sampled_from([None, 0, 2_000]),
    )
    def fail(self, picked, then, retry_after_ms):
        error = JobError("Boom", "it broke")
        items = [
            FailItem(job_id, delivery, error, then, retry_after_ms)
            for job_id, delivery in self._leases(picked)
        ]
        self.once.failed(items, decide_fail(self.shard, self.now, items))

    @rule(picked=picks, delay=delays)
    def release(self, picked, delay):
        items = [ReleaseItem(i, delivery, delay) for i, delivery in self._leases(picked)]
        self.once.released(items, decide_release(self.shard, self.now, items))

    @rule(picked=picks)
    def abandon(self, picked):
        """A worker says goodbye."""
        items = [ReleaseItem(i, delivery) for i, delivery in dict.fromkeys(self._leases(picked))]
        decide_abandon(self.shard, self.now, items)

    @rule(
        picked=picks,
        checkpoint=st.sampled_from([None, b"half way"]),
        lines=reported,
        phase=st.sampled_from(["", "one", "two"]),
    )
    def extend(self, picked, checkpoint, lines, phase):
        items = [
            ExtendItem(i, delivery, None, checkpoint and 50.0, None, checkpoint, lines, phase)
            for i, delivery in self._leases(picked)
        ]
        decide_extend(self.shard, self.now, items)

    # Operators.

    def _live(self, picked: list[int]) -> list[int]:
        # The jobs of messages are left alone: in the end each must be there.
        lots = [lot for lot in self.shard.lots.lots.values() if "from" not in lot.queue.name]
        ids = [*self.shard.jobs, *(i for lot in lots for i in range(lot.first_id, lot.end_id()))]
        return [ids[-1 - pick] for pick in picked if pick < len(ids)]

    @rule(picked=picks, what=st.sampled_from(["promote", "promote", "cancel", "delete"]))
    def change_live(self, picked, what):
        ids = self._live(picked)
        if what == "promote":
            decide_promote(self.shard, self.now, ids)
        elif what == "cancel":
            decide_cancel(self.shard, self.now, ids)
        else:
            decide_delete_waiting(self.shard, self.now, ids)

    @rule(picked=picks, what=st.sampled_from(["retry", "retry", "automatic", "stale", "delete"]))
    def change_ended(self, picked, what):
        """As the runtime does: everything is committed and written before anybody looks."""
        self.world.commit()
        self.world.write_buffer()
        kept = self.world.kept()
        ids = list(kept)
        for job_id in dict.fromkeys(ids[-1 - pick] for pick in picked if pick < len(ids)):
            self._change_one(*kept[job_id], what)

    def _change_one(self, state: JobState, record: JobRecord, what: str) -> None:
        change = {"stale": decide_age_out, "delete": decide_delete_ended}.get(what)
        if change is None:
            self.once.may_run(record.id)
            decide_retry(self.shard, self.now, [(record, state)], automatic=what == "automatic")
        elif state is not JobState.STALE or what == "delete":
            change(self.shard, self.now, record.queue, state, [(record.id, 1)])

    @rule(
        queue=queues,
        what=st.sampled_from(
            ["resume", "resume", "resume", "settings", "pause", "delete", "force"]
        ),
        chosen=st.sampled_from(SETTINGS),
    )
    def change_queue(self, queue, what, chosen):
        try:
            if what == "pause":
                decide_pause_queue(self.shard, self.now, queue, "ops", "a look")
            elif what == "resume":
                decide_resume_queue(self.shard, self.now, queue)
            elif what == "settings":
                decide_update_queue(self.shard, self.now, queue, chosen, None)
            else:
                decide_delete_queue(self.shard, self.now, queue, force=what == "force")
        except Refused:
            return
