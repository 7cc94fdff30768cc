"""Jobs that depend on others, of their own shard and of another one, as rules of the state machine.

What is told, and looked up, may break off anywhere. At the end no job waits for one that is over,
and nobody holds anything of those that are.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import rule

from jobline_server.engine.commands import FailItem, Push, Refused
from jobline_server.engine.decide.ack import decide_ack
from jobline_server.engine.decide.add_children import (
    FlowParent,
    decide_add_children,
    decide_set_aside,
)
from jobline_server.engine.decide.dependencies import decide_parents_ended, release_dependents
from jobline_server.engine.decide.lease import decide_lease
from jobline_server.engine.decide.outcomes import OutcomesNeeded
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.settle import decide_fail
from jobline_server.engine.holder import Holder
from jobline_server.engine.job_columns import NO_ROWS
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.records import JobRecord
from jobline_server.engine.rules import DependencyPolicy, JobRules
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    FailAction,
    JobError,
    JobState,
    shard_of,
)
from tests.pushed_rows import NewJob, rows_of
from tests.storage.message_rules import OTHER, MessageRules
from tests.storage.recovery_world import SHARD, World

BLOCKED = JobState.BLOCKED
policies = st.sampled_from([None, *DependencyPolicy])
shards = st.sampled_from([SHARD, OTHER])


class DependencyRules(MessageRules):
    """Children in either shard, of parents in both."""

    @rule(payloads=st.integers(1, 3))
    def push_parents_elsewhere(self, payloads):
        options, plain = DEFAULT_OPTIONS, Payloads.of([b"p"] * payloads)
        decide_push(self.other.shard, self.other.now, Push("parents", options, NO_ROWS, plain))

    @rule(
        shard=shards,
        policy=policies,
        timeout_ms=st.sampled_from([None, None, 2_000]),
        picks=st.lists(st.tuples(shards, st.integers(0, 12)), min_size=1, max_size=3),
        about=st.lists(st.sampled_from([0, 0, *DependencyPolicy]), min_size=3, max_size=3),
    )
    def push_child(self, shard, policy, timeout_ms, picks, about):
        parents = [self._job_at(of_shard, pick) for of_shard, pick in picks]
        rules = JobRules(on_dependency_failure=policy, block_timeout_ms=timeout_ms)
        options = replace(DEFAULT_OPTIONS, rules=rules)
        named = tuple(dict.fromkeys(one for one in parents if one))
        ties = Ties(parents=named, on_failure=bytes(about[: len(named)]))
        world = self._world(shard)
        push = Push("children", options, rows_of([NewJob(b"c", options, ties=ties)]))
        try:
            self._decide(world, push)
        except Refused:
            return

    def _decide(self, world: World, push: Push) -> None:
        try:
            decide_push(world.shard, world.now, push)
        except OutcomesNeeded as needed:
            states = {job_id: self._state_of(job_id) for job_id in needed.ids}
            decide_push(world.shard, world.now, push, states)

    def _job_at(self, shard: int, pick: int) -> int:
        """One of the newest live jobs of a shard, or of its ended ones; 0 if there is none."""
        world = self._world(shard)
        ids = [*world.shard.jobs, *(lot.end_id() - 1 for lot in world.shard.lots.lots.values())]
        ids += [*world.ended][-3:]
        return ids[-1 - pick % len(ids)] if ids else 0

    def _state_of(self, job_id: int) -> JobState | None:
        """As the runtime looks it up: what is not committed has not happened."""
        world = self._world(shard_of(job_id))
        live = world.shard.state_of(job_id)
        if live is not None:
            return live
        world.commit()
        kept = world.ended.get(job_id)
        return None if kept is None else outcome_of(kept)

    @rule(shard=shards, limit=st.integers(1, 3))
    def tell_some(self, shard, limit):
        world = self._world(shard)
        release_dependents(world.shard, world.now, limit)

    @rule(shard=shards, ends=st.sampled_from(["ack", "ack", "fail"]))
    def run_parents_elsewhere(self, shard, ends):
        """Both shards have jobs that are done or die; those of the first have other rules, too."""
        world = self._world(shard)
        world.commit()
        queue = world.shard.queues.get(_queue_of(shard))
        if queue is None:
            return
        leased = decide_lease(
            world.shard, world.now, queue, Holder("w", ""), max_jobs=2, max_bytes=1 << 20,
            names=None, lease_ms=0,
        )  # fmt: skip
        pairs = [(job.id, job.delivery) for job in leased.jobs]
        for run in leased.runs:
            pairs += [(run.first_id + at, run.delivery) for at in range(len(run.payloads))]
        if ends == "ack":
            decide_ack(world.shard, world.now, [i for i, _ in pairs], [d for _, d in pairs], {})
        else:
            error = JobError("Boom", "it broke")
            items = [FailItem(*pair, error, FailAction.DEAD) for pair in pairs]
            decide_fail(world.shard, world.now, items)

    @rule(shard=shards, of_child=shards)
    def add_a_child(self, shard, of_child):
        """A worker sets its job aside for a new child, here or in the other shard."""
        world, other = self._world(shard), self._world(of_child)
        world.commit()
        queue = world.shard.queues.get(_queue_of(shard))
        if queue is None:
            return
        leased = decide_lease(
            world.shard, world.now, queue, Holder("w", ""), max_jobs=1, max_bytes=1 << 20,
            names=None, lease_ms=0,
        )  # fmt: skip
        pairs = [(job.id, job.delivery) for job in leased.jobs]
        pairs += [(run.first_id, run.delivery) for run in leased.runs]
        for job_id, delivery in pairs:
            plain = Payloads.of([b"p"])
            push = Push(_queue_of(of_child), DEFAULT_OPTIONS, NO_ROWS, plain)
            child = decide_push(other.shard, other.now, push).first_id
            if other is not world:
                other.commit()
            lease = FlowParent(job_id, delivery)
            decide_set_aside(world.shard, world.now, lease, 1)
            decide_add_children(world.shard, world.now, lease, [child], {})

    @rule(shard=shards)
    def look_up(self, shard):
        world = self._world(shard)
        ids = world.shard.dependencies.due_look_ups(100)
        decide_parents_ended(world.shard, world.now, {one: self._state_of(one) for one in ids})

    def tell(self) -> None:
        """All that follows from ends of jobs is decided, and committed."""
        for shard in (SHARD, OTHER):
            world = self._world(shard)
            self.look_up_all(world)
            while release_dependents(world.shard, world.now, 100):
                pass
            world.commit()

    def look_up_all(self, world: World) -> None:
        ids = world.shard.dependencies.due_look_ups(10_000)
        decide_parents_ended(world.shard, world.now, {one: self._state_of(one) for one in ids})

    def check_dependencies(self) -> None:
        """G13: every BLOCKED job waits for one that lives, or that died and may be retried. What is
        held of others is held for them.
        """
        for shard in (SHARD, OTHER):
            world = self._world(shard)
            awaited = world.shard.dependencies.awaited
            for job in world.shard.jobs.values():
                if job.state is BLOCKED:
                    assert job.details.parents_left or job.ties.claim.parked
                    for parent in job.details.parents_left:
                        self._check_parent(world, parent)
            for job_id, record in awaited.items():
                assert record.end is None, "not all were told"
                # A shard may have stopped waiting; it says so when it is told of the end.
                if record.shards and not record.children:
                    state = self._state_of(job_id)
                    assert state not in {None, JobState.COMPLETED}, "held for nobody"

    def _check_parent(self, world: World, parent: int) -> None:
        state = self._state_of(parent)
        assert state is not None, "it waits for a job that is gone"
        assert state is not JobState.COMPLETED, "it waits for a job that is done"
        owner = self._world(shard_of(parent)).shard
        if owner is not world.shard:
            record = owner.dependencies.awaited.find(parent)
            assert record is not None, "its parent knows nobody to tell"
            assert world.shard.number in record.shards


def _queue_of(shard: int) -> str:
    """The queue whose jobs are run in a shard."""
    return "parents" if shard == OTHER else "children"


def outcome_of(kept: tuple[JobState, JobRecord]) -> JobState:
    """How a job ended, also if it is STALE by now; those that died and were cancelled are alike."""
    state, record = kept
    if state is JobState.STALE:
        return JobState.DEAD if record.reason else JobState.COMPLETED
    return state
