"""Batches whose members are in two shards, under random commands, commits, checkpoints and crashes.

Both shards are written in one transaction, as in the runtime, so a crash takes what was not
committed from both. Messages between them are applied and acknowledged in commits of their own,
with crashes between. In the end, when all messages have arrived, the counts of each batch equal a
plain recount of its members, and each callback was pushed once, or never if it was not due.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from jobline_server.engine import invariants
from jobline_server.engine.batches import BatchSpec, MemberEnd
from jobline_server.engine.commands import FailItem, Push
from jobline_server.engine.decide.ack import decide_ack
from jobline_server.engine.decide.admin import (
    decide_age_out,
    decide_cancel,
    decide_delete_ended,
    decide_delete_waiting,
    decide_retry,
)
from jobline_server.engine.decide.batches import (
    decide_cancel_batch,
    decide_close_batch,
    decide_create_batch,
)
from jobline_server.engine.decide.lease import decide_lease
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.settle import decide_fail
from jobline_server.engine.holder import Holder
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    FailAction,
    JobError,
    JobState,
    Retention,
    shard_of,
)
from tests.examples import EXAMPLES
from tests.pushed_rows import NewJob, rows_of
from tests.storage.batch_worlds import (
    CALLS,
    QUEUE,
    SHARDS,
    BatchWorlds,
    Told,
    callback,
    numbers,
    shards,
)

pytestmark = pytest.mark.timeout(0 if EXAMPLES else 300)


class BatchMachine(BatchWorlds):
    """Two shards, and batches at home in either."""

    # Steps.

    # Batches.

    @rule(home=shards, then=shards, nested=st.none() | numbers)
    def create(self, home, then, nested):
        parent = None if nested is None else self.picked(nested)
        if parent is not None and (not parent.takes_members() or parent.spec.parent):
            return
        home = home if parent is None else shard_of(parent.id)
        world = self.worlds[home]
        spec = BatchSpec(
            parent=0 if parent is None else parent.id,
            on_success=callback("success", then),
            on_complete=callback("complete", home),
            on_first_death=callback("death", then),
        )
        batch = decide_create_batch(world.shard, world.now, spec)
        self.commit()
        self.told[batch.id] = Told()
        if parent is not None:
            self.told[parent.id].children.append(batch.id)

    @rule(number=numbers, shard=shards, jobs=st.integers(1, 4), as_lot=st.booleans())
    def push(self, number, shard, jobs, as_lot, crashes=False):
        batch = self.picked(number)
        if batch is None or not batch.takes_members():
            return
        world = self.worlds[shard]
        rules = replace(NO_RULES, batch_id=batch.id)
        options = replace(DEFAULT_OPTIONS, rules=rules, retention=Retention(age_ms=1 << 40))
        payloads = [b"x"] * jobs
        if as_lot:
            command = Push(QUEUE, options, payloads=Payloads.of(payloads))
        else:
            command = Push(QUEUE, options, rows_of([NewJob(one, options) for one in payloads]))
        pushed = decide_push(world.shard, world.now, command)
        self.commit()
        ids = range(pushed.first_id, pushed.first_id + pushed.count)
        self.told[batch.id].ends.update(dict.fromkeys(ids))

    @rule(number=numbers)
    def close(self, number):
        batch = self.picked(number)
        if batch is not None:
            world = self.worlds[shard_of(batch.id)]
            decide_close_batch(world.shard, world.now, batch.id)
            self.commit()
            self.told[batch.id].closed = True

    @rule(number=numbers)
    def cancel(self, number):
        batch = self.picked(number)
        if batch is not None:
            world = self.worlds[shard_of(batch.id)]
            decide_cancel_batch(world.shard, world.now, batch.id, "me", "")
            for one in self.worlds.values():
                ids = [i for i in self.told[batch.id].ends if shard_of(i) == one.number]
                decide_cancel(one.shard, one.now, ids)
            self.commit()
            self.told[batch.id].closed = True
            self.note()

    # Members.

    @rule(shard=shards, jobs=st.integers(1, 5), how=st.sampled_from(["ack", "dead", "cancel"]))
    def work(self, shard, jobs, how):
        world = self.worlds[shard]
        queue = world.shard.queues.get(QUEUE)
        if queue is None:
            return
        holder = Holder("w", "")
        leased = decide_lease(
            world.shard,
            world.now,
            queue,
            holder,
            max_jobs=jobs,
            max_bytes=1 << 20,
            names=None,
            lease_ms=0,
        )
        pairs = [(job.id, job.delivery) for job in leased.jobs]
        for run in leased.runs:
            pairs += [(run.first_id + at, run.delivery) for at in range(run.count())]
        if how == "ack":
            ids, deliveries = [one for one, _ in pairs], [delivery for _, delivery in pairs]
            decide_ack(world.shard, world.now, ids, deliveries, {})
        else:
            then = FailAction.DEAD if how == "dead" else FailAction.CANCEL
            items = [FailItem(one, delivery, JobError("E"), then) for one, delivery in pairs]
            decide_fail(world.shard, world.now, items)
        self.commit()
        self.note()

    @rule(shard=shards, picks=st.sets(numbers, max_size=4), how=st.sampled_from(["cancel", "rm"]))
    def end_waiting(self, shard, picks, how):
        world = self.worlds[shard]
        live = [
            one
            for told in self.told.values()
            for one, end in told.ends.items()
            if end is None and shard_of(one) == shard
        ]
        ids = sorted({live[pick % len(live)] for pick in picks}) if live else []
        if how == "cancel":
            decide_cancel(world.shard, world.now, ids)
            self.commit()
            self.note()
            return
        decide_delete_waiting(world.shard, world.now, ids)
        self.commit()
        self.note(deleted=True)

    @rule(shard=shards, picks=st.sets(numbers, max_size=3), stale=st.booleans())
    def retry(self, shard, picks, stale):
        world = self.worlds[shard]
        ended = sorted(world.ended)
        chosen = sorted({ended[pick % len(ended)] for pick in picks}) if ended else []
        if stale:
            for one in chosen:
                state, record = world.ended[one]
                if state is not JobState.STALE:
                    decide_age_out(world.shard, world.now, record.queue, state, [(one, 1)])
            self.commit()
        outcomes = {one: self.outcome(one) for one in chosen}
        pairs = [world.ended[one][::-1] for one in chosen]
        decide_retry(world.shard, world.now, pairs, outcomes=outcomes)
        self.commit()
        for told in self.told.values():
            for one in chosen:
                if one in told.ends:
                    told.ends[one] = None

    @rule(shard=shards, pick=numbers)
    def delete_ended(self, shard, pick):
        """Retention changes no count."""
        world = self.worlds[shard]
        if world.ended:
            one = sorted(world.ended)[pick % len(world.ended)]
            state, record = world.ended[one]
            decide_delete_ended(world.shard, world.now, record.queue, state, [(one, 1)])
            self.commit()

    # Storage, and messages.

    @rule(how=st.sampled_from(["commit", "stage", "finish", "truncate", "crash", "crash"]))
    def storage(self, how):
        for world in self.worlds.values():
            if how == "stage":
                world.stage(2)
            elif how in {"finish", "truncate"}:
                world.finish_checkpoint(truncate=how == "truncate")
        if how == "crash":
            self.crash()

    @rule(number=numbers, shard=shards)
    def crash_in_a_push(self, number, shard):
        """Neither the jobs nor their membership are left."""
        batch = self.picked(number)
        if batch is not None and batch.takes_members():
            world = self.worlds[shard]
            options = replace(DEFAULT_OPTIONS, rules=replace(NO_RULES, batch_id=batch.id))
            decide_push(world.shard, world.now, Push(QUEUE, options, payloads=Payloads.of([b"y"])))
            self.settle()
            self.crash()

    @rule(
        sender=shards,
        receiver=shards,
        until=st.sampled_from(["decided", "applied", "acknowledged", "done", "done"]),
        crashes=st.booleans(),
    )
    def deliver(self, sender, receiver, until, crashes):
        self._deliver(sender, receiver, until)
        if crashes or until != "done":
            self.crash()

    # What must hold.

    @invariant()
    def invariants_hold(self):
        for world in self.worlds.values():
            invariants.check(world.shard)

    @precondition(lambda self: self.told)
    @rule()
    def everything_arrives(self):
        """All messages are delivered; now counts are exact."""
        while sum(self._deliver(one, other) for one in SHARDS for other in SHARDS):
            pass
        for batch_id, told in self.told.items():
            self._compare(batch_id, told)
        calls = self._calls()
        for batch_id, told in self.told.items():
            batch = self.worlds[shard_of(batch_id)].shard.batches.records[batch_id]
            over = batch.completed_ms > 0
            for name in CALLS:
                assert calls[batch_id, name] <= 1
            assert calls[batch_id, "death"] == batch.ends.has_died
            assert calls[batch_id, "complete"] or not over
            assert calls[batch_id, "success"] or not (over and batch.outcome is MemberEnd.DONE)
            assert told.has_died <= batch.ends.has_died

    def teardown(self) -> None:
        if self.told:
            self.everything_arrives()
            self.crash()
            self.everything_arrives()


BatchMachine.TestCase.settings = settings(
    max_examples=EXAMPLES or 150,
    stateful_step_count=40,
    derandomize=not EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestBatches = BatchMachine.TestCase
