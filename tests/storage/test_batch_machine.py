"""Batches whose members are in two shards, under random commands, commits, checkpoints and crashes.

Both shards are written in one transaction, as in the runtime, so a crash takes what was not
committed from both. Messages between them are applied and acknowledged in commits of their own,
with crashes between. In the end, when all messages have arrived, the counts of each batch equal a
plain recount of its members, and each callback was pushed once, or never if it was not due.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from jobline_server.engine import invariants
from jobline_server.engine.batches import END_OF_STATE, Batch, BatchSpec, Callback, MemberEnd
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
    decide_joined,
    settle_batches,
)
from jobline_server.engine.decide.lease import decide_lease
from jobline_server.engine.decide.messages import decide_acknowledge, next_batch
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.receive import decide_receive
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
from tests.shard_image import image_of
from tests.storage.recovery_world import SHARD, World

pytestmark = pytest.mark.timeout(0 if EXAMPLES else 300)

OTHER = 5
SHARDS = (SHARD, OTHER)
QUEUE = "q"
CALLS = ("success", "complete", "death")

shards = st.sampled_from(SHARDS)
numbers = st.integers(0, 30)


@dataclass
class Told:
    """What is known of one batch: its members that were committed, and how those ended."""

    ends: dict[int, MemberEnd | None] = field(default_factory=dict)
    children: list[int] = field(default_factory=list)
    has_died: bool = False
    closed: bool = False


def callback(name: str, shard: int) -> Callback:
    return Callback(name, shard, DEFAULT_OPTIONS, name.encode())


class BatchMachine(RuleBasedStateMachine):
    """Two shards, and batches at home in either."""

    def __init__(self) -> None:
        super().__init__()
        self.worlds = {number: World(number) for number in SHARDS}
        self.told: dict[int, Told] = {}
        self._meet()

    def _meet(self) -> None:
        """Shards of one process see the batches of each other."""
        for world in self.worlds.values():
            for other in self.worlds.values():
                world.shard.load.batches[other.number] = other.shard.batches

    # Steps.

    def settle(self) -> None:
        """What follows every decision, in the same commit."""
        for world in self.worlds.values():
            for batch_id, count in world.shard.batches.take_joining().items():
                home = self.worlds[shard_of(batch_id)]
                decide_joined(home.shard, home.now, {batch_id: count})
        for world in self.worlds.values():
            settle_batches(world.shard, world.now, 100)

    def commit(self) -> None:
        self.settle()
        for world in self.worlds.values():
            world.commit()

    def crash(self) -> None:
        for world in self.worlds.values():
            before = world.image
            world.crash(ops_kept=0)
            image = image_of(world.shard)
            for kind in ("batches", "members", "unsent", "outboxes", "inboxes", "jobs", "lots"):
                assert image[kind] == before[kind], kind
        self._meet()

    def world_of(self, number: int) -> World:
        return self.worlds[number]

    def picked(self, number: int) -> Batch | None:
        """One of the batches."""
        known = [*self.told]
        if not known:
            return None
        batch_id = known[number % len(known)]
        return self.worlds[shard_of(batch_id)].shard.batches.records[batch_id]

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

    def outcome(self, job_id: int) -> JobState:
        """How a member ended; of callbacks nobody asks."""
        for told in self.told.values():
            if (end := told.ends.get(job_id)) is not None:
                return {value: state for state, value in END_OF_STATE.items()}[end]
        return JobState.COMPLETED

    @rule(shard=shards, pick=numbers)
    def delete_ended(self, shard, pick):
        """Retention changes no count."""
        world = self.worlds[shard]
        if world.ended:
            one = sorted(world.ended)[pick % len(world.ended)]
            state, record = world.ended[one]
            decide_delete_ended(world.shard, world.now, record.queue, state, [(one, 1)])
            self.commit()

    def note(self, *, deleted: bool = False) -> None:
        """Members that are live no more have ended as the world says, or were deleted."""
        for told in self.told.values():
            for one, end in told.ends.items():
                world = self.worlds[shard_of(one)]
                if end is None and world.shard.state_of(one) is None:
                    now = MemberEnd.DELETED
                    if not deleted:
                        now = END_OF_STATE[world.ended[one][0]]
                    told.ends[one] = now
                    told.has_died |= now is MemberEnd.DEAD

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

    def _deliver(self, sender: int, receiver: int, until: str = "done") -> bool:
        one, other = self.worlds[sender], self.worlds[receiver]
        batch = next_batch(one.shard, receiver)
        if batch is None:
            return False
        up_to = decide_receive(other.shard, other.now, batch)
        self.settle()
        if until == "decided":
            return True
        self.commit()
        if until == "applied":
            return True
        decide_acknowledge(one.shard, one.now, receiver, up_to)
        self.settle()
        if until != "acknowledged":
            self.commit()
        return True

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

    def _compare(self, batch_id: int, told: Told) -> None:
        """Compares the counts of a batch with a plain recount."""
        records = self.worlds[shard_of(batch_id)].shard.batches.records
        batch = records[batch_id]
        inner = [records[one] for one in told.children]
        found = Counter(end for end in told.ends.values() if end is not None)
        found.update(one.outcome for one in inner if one.completed_ms)
        assert batch.total == len(told.ends) + len(inner)
        assert batch.ends.by_end == [found[end] for end in MemberEnd]
        pending = batch.total - sum(found.values())
        assert bool(batch.completed_ms) == (told.closed and not pending)

    def _calls(self) -> Counter[tuple[int, str]]:
        """Counts the callbacks that were ever pushed: those that wait, and those that ended."""
        calls: Counter[tuple[int, str]] = Counter()
        for world in self.worlds.values():
            for lot in world.shard.lots.lots.values():
                if lot.queue.name in CALLS:
                    calls[int(dict(lot.options.headers)["jobline-batch"]), lot.queue.name] += 1
        return calls

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
