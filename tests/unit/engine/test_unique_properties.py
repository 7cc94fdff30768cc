"""Properties of unique keys, by the numbers of their promises."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline_server.engine import invariants
from jobline_server.engine.commands import ReleaseItem
from jobline_server.engine.decide.admin import decide_cancel, decide_retry
from jobline_server.engine.records import JobRecord
from jobline_server.engine.unique_rule import UniqueMode
from jobline_server.engine.values import EndReason, FailAction, JobState
from tests.unit.engine.unique_jobs import Mode, Out, S, check_recovery, new
from tests.unit.engine.world import World

# These hold a key until their job has ended: one at a time, whatever happens.
UNTIL_ENDED = [mode for mode in Mode if mode not in (Mode.EXTEND, Mode.THROTTLE)]
KEYS = st.sampled_from(["u", "v"])
pushes = st.tuples(
    st.just("push"), KEYS, st.sampled_from(UNTIL_ENDED), st.sampled_from([0, 0, 2_000])
)
others = st.tuples(
    st.sampled_from(["lease", "ack", "fail", "dead", "release", "cancel", "retry", "wait"]),
    KEYS,
    st.just(Mode.KEEP),
    st.just(0),
)
histories = st.lists(pushes | others, max_size=25)


class History:
    """A world in which jobs with unique keys are pushed and run, and what became of them."""

    def __init__(self) -> None:
        self.world = World()
        self.leased: dict[int, int] = {}
        self.kept: dict[int, tuple[JobRecord, JobState]] = {}
        self.accepted: set[int] = set()

    def step(self, what: str, key: str, mode: UniqueMode, delay_ms: int) -> None:
        world = self.world
        if what == "push":
            at_ms = world.now.wall_ms
            job = new(mode, key=key, delay_ms=delay_ms, at_ms=at_ms)
            pushed = world.push(jobs=[job], atomic=False)
            self.accepted.update(range(pushed.first_id, pushed.first_id + pushed.count))
        elif what == "lease" and "q" in world.shard.queues:
            self.leased.update({job.id: job.delivery for job in world.lease(1).jobs})
        elif what == "wait":
            world.tick(1_500)
        elif what == "retry":
            decide_retry(world.shard, world.now, list(self.ended().values())[-2:])
            world.commit()
        elif self.leased:
            self._settle(what, *self.leased.popitem())

    def _settle(self, what: str, job_id: int, delivery: int) -> None:
        world = self.world
        if what == "ack":
            world.ack([(job_id, delivery)])
        elif what == "release":
            world.release(ReleaseItem(job_id, delivery))
        elif what == "cancel":
            decide_cancel(world.shard, world.now, [job_id])
            world.commit()
        else:
            then = FailAction.DEAD if what == "dead" else FailAction.RETRY
            world.fail(job_id, delivery, then=then)

    def ended(self):
        for job_id, (state, record) in self.world.ended().items():
            self.kept[job_id] = (record, state)
        live = self.world.shard.jobs
        return {i: pair for i, pair in self.kept.items() if i not in live}

    def drain(self) -> None:
        """Workers do all that is left; those that forgot a job lose it."""
        world = self.world
        for _ in range(100):
            world.tick(40_000)
            if not world.shard.load.live_jobs:
                return
            for job in world.lease().jobs:
                world.ack([(job.id, job.delivery)])
        pytest.fail("it does not drain")


@given(histories)
def test_g6_one_unfinished_job_holds_a_key_and_at_most_one_waits_behind_it(steps):
    """Without a `unique_ttl`, after each step: retries, releases and pauses are part of a job."""
    history = History()
    for step in steps:
        history.step(*step)
        invariants.check(history.world.shard)
        jobs = history.world.shard.jobs.values()
        counts = Counter((job.ties.unique_key, job.state is S.BLOCKED) for job in jobs)
        assert all(count == 1 for count in counts.values())
        assert all((key, False) in counts for key, is_behind in counts if is_behind)
    check_recovery(history.world)


@given(histories)
def test_g6_and_g7_every_job_ends_and_no_key_is_held_when_all_has_drained(steps):
    """What was accepted has run, or lost its place to a newer job, or was cancelled by hand."""
    history = History()
    for step in steps:
        history.step(*step)
    history.drain()
    world = history.world
    unique = world.shard.unique
    assert (unique.held, len(unique.holders), len(unique.parked)) == (0, 0, 0)
    ended = history.ended()
    assert set(ended) == history.accepted
    lost = {EndReason.REPLACED, EndReason.CANCELLED}
    for record, state in ended.values():
        ran = state is S.COMPLETED or (state is S.DEAD and record.delivery)
        assert ran or (state is S.CANCELLED and record.reason in lost)
    check_recovery(world)


@given(st.lists(st.sampled_from([0, 400, 1_000, 2_500]), min_size=1, max_size=12))
def test_g6_a_throttled_key_lets_one_job_in_for_each_of_its_times(pauses):
    """However often it is pushed, and however soon its jobs end."""
    history = History()
    world, created = history.world, []
    for pause in pauses:
        world.tick(pause)
        pushed = world.push(jobs=[new(Mode.THROTTLE, ttl_ms=2_000)])
        if not pushed.exceptions:
            created.append(world.now.mono_ms)
        else:
            assert pushed.exceptions[0][1] is Out.THROTTLED
        for job in world.lease().jobs:
            world.ack([(job.id, job.delivery)])
    assert all(later - earlier >= 2_000 for earlier, later in pairwise(created))
    world.tick(100_000)
    assert world.shard.load.throttles == 0
