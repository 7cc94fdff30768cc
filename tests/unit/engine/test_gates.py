"""Gates: a closed lane gives nothing and costs nothing, and opens at its moment."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobline_server.engine import limits, open_lanes, ranks
from jobline_server.engine.allowance import RECHECK_MS
from jobline_server.engine.decide.choice import Choice
from jobline_server.engine.decide.choose import choose
from jobline_server.engine.decide.timers import next_deadline, open_gates
from jobline_server.engine.effects import QueueWoken
from jobline_server.engine.gates import MOMENTS_SPARE, UNTIL_NOTICE, Gates
from jobline_server.engine.job import Job
from jobline_server.engine.lane import Lane, LaneKey, lane_key
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.values import JobOptions, JobState, Now
from tests.unit.engine.gates_by_hand import close_gate, open_gate
from tests.unit.engine.queue_jobs import QueueJobs, lanes_looked_at
from tests.unit.engine.world import MONO_MS, World

A = (0, "a", 0, None, "")
B = (0, "b", 0, None, "")


@pytest.fixture
def closed(world: World) -> World:
    """A ready job of each of two names; those of one may not go out for a second."""
    world.row(name="a")
    world.row(name="b")
    close_gate(world.shard, world.queue(), A, MONO_MS + 1_000)
    world.check()
    return world


def test_closed_lane_gives_nothing_until_its_moment(closed):
    [first, second] = sorted(closed.shard.jobs)
    assert closed.ids() == [second]
    closed.advance(999)
    assert closed.ids() == []
    closed.advance(1)
    assert closed.ids() == [first]
    closed.check()


def test_timers_wake_the_queue_when_its_first_gate_opens(closed):
    """And only then."""
    shard, queue = closed.shard, closed.queue()
    close_gate(shard, queue, B, MONO_MS + 3_000)
    assert next_deadline(shard, closed.now) == 1_000
    assert open_gates(shard, closed.now) == []
    closed.advance(1_000)
    assert open_gates(shard, closed.now) == [queue]
    assert next_deadline(shard, closed.now) == 2_000
    closed.check()


def test_gate_that_is_closed_until_further_notice_is_opened_by_hand(world):
    job_id = world.row(name="a")
    shard, queue = world.shard, world.queue()
    close_gate(shard, queue, A)
    world.advance(1 << 40)
    assert (world.ids(), next_deadline(shard, world.now)) == ([], None)
    shard.effects = []
    open_gate(shard, queue, A)
    assert shard.effects == [QueueWoken(queue)]
    assert world.ids() == [job_id]


def test_gate_stays_closed_while_its_lane_is_empty(world):
    first = world.row(name="a")
    close_gate(world.shard, world.queue(), A)
    world.queue().leave(world.shard.jobs[first], 1)
    world.shard.jobs[first].state = JobState.CANCELLED
    second = world.row(name="a")
    assert world.ids() == []
    open_gate(world.shard, world.queue(), A)
    assert world.ids() == [second]


def test_gate_of_a_lane_that_never_had_a_job_leaves_nothing_behind(world):
    world.row()
    queue = world.queue()
    close_gate(world.shard, queue, A)
    open_gate(world.shard, queue, A)
    open_gate(world.shard, queue, A)
    assert queue.find_lane(A) is None
    world.check()


def test_moment_of_a_closed_gate_may_move(closed):
    shard, queue = closed.shard, closed.queue()
    close_gate(shard, queue, A, MONO_MS + 5_000)
    closed.advance(1_000)
    # The timers look too early once; it is closed still.
    assert open_gates(shard, closed.now) == [queue]
    assert next_deadline(shard, closed.now) == 4_000
    close_gate(shard, queue, A, MONO_MS + 2_000)
    assert next_deadline(shard, closed.now) == 1_000
    closed.advance(1_000)
    assert open_gates(shard, closed.now) == [queue]
    assert len(closed.ids()) == 2


def test_deleted_queue_is_not_woken(closed):
    del closed.shard.queues["q"]
    closed.advance(1_000)
    assert open_gates(closed.shard, closed.now) == []


def test_timers_do_not_keep_a_queue_for_longer_than_a_minute(world):
    """Its next token may be a month away, and it may be deleted meanwhile."""
    world.settings(rate=RateLimit(1, limits.RATE_PERIOD_MS_MAX, 1))
    world.plain(b"x", b"x")
    world.tick(limits.RATE_PERIOD_MS_MAX)
    assert len(world.ids()) == 1
    assert world.ids() == []
    assert world.shard.gates.first_ms() == world.now.mono_ms + RECHECK_MS


def test_many_gates_open_a_slice_at_a_time(world):
    for number in range(5):
        world.row(name=str(number))
        close_gate(world.shard, world.queue(), (0, str(number), 0, None, ""), MONO_MS + 1)
    timers = world.shard.gates
    assert timers.open_due(MONO_MS + 1, 2) == [world.queue()]
    assert (len(world.queue().gates.closed), timers.first_ms()) == (3, MONO_MS + 1)


def test_moments_do_not_pile_up():
    """Of gates that are closed for long and opened early, and of one that is closed again."""
    world = World()
    world.row()
    queue, gates = world.queue(), Gates()
    lane = Lane(*A)
    for number in range(10_000):
        gates.close(lane, number + 1)
        close_gate(world.shard, queue, A, 1_000_000 - number)
        open_gate(world.shard, queue, A)
    assert len(gates._heap) <= 2 + MOMENTS_SPARE
    close_gate(world.shard, queue, A, MONO_MS + 1_000_000)
    for second in range(1_000):
        close_gate(world.shard, queue, B, MONO_MS + second)
        world.shard.gates.open_due(MONO_MS + second, 10)
    assert len(world.shard.gates._heap) <= 3


def test_pull_does_not_look_at_closed_lanes(monkeypatch):
    """Ten thousand of them: they leave the heap of heads, and come back."""
    world = World()
    ids = [world.row(name=f"n{number}") for number in range(500)]
    queue = world.queue()
    assert [*queue.open.fronts(None, None)] != []
    world.shard.clocks.advance(world.now)
    assert len(pulled(world, 3)) == 3
    for number in range(499):
        close_gate(world.shard, queue, (0, f"n{number}", 0, None, ""), MONO_MS + 1_000)
    assert pulled(world, 3) == ids[499:]
    looked = lanes_looked_at(monkeypatch)
    assert pulled(world, 3) == ids[499:]
    assert len(looked) <= 2
    world.advance(1_000)
    assert pulled(world, 3) == ids[:3]


def pulled(world: World, limit: int, names: frozenset[str] | None = None) -> list[int]:
    """What would go out."""
    chosen = Choice(limit, 1 << 30, is_idle=True)
    choose(world.queue(), names, world.now, world.shard.committed, chosen)
    return [item.id for item in chosen.items]


class Model(QueueJobs):
    """A queue beside a sorted list of what is ready."""

    NAMES = 6

    def __init__(self) -> None:
        super().__init__()
        self.closed: dict[LaneKey, int] = {}
        self.now_ms = 0

    def put(self, draw: int) -> None:
        name, priority = f"n{draw % self.NAMES}", draw // self.NAMES % 2
        self.queue.put(self.add(JobOptions(name=name, priority=priority)), 1)

    def lease(self, draw: int) -> None:
        for job in self.chosen(draw % 4, self.names(draw)):
            self.hand_out(job)

    def key(self, draw: int) -> LaneKey:
        return draw // self.NAMES % 2, f"n{draw % self.NAMES}", 0, None, ""

    def close(self, draw: int) -> None:
        key = self.key(draw)
        opens_ms = UNTIL_NOTICE if draw % 5 == 0 else self.now_ms + 1 + draw % 7
        self.queue.close_gate(key, opens_ms)
        self.closed[key] = opens_ms

    def open(self, draw: int) -> None:
        key = self.key(draw)
        self.queue.open_gate(key)
        self.closed.pop(key, None)

    def wait(self, draw: int) -> None:
        self.now_ms += draw % 4

    def names(self, draw: int) -> frozenset[str] | None:
        """Any, few, or many."""
        if draw % 3 == 0:
            return None
        return frozenset(f"n{n}" for n in range(self.NAMES) if draw >> n & 1)

    def expected(self, names: frozenset[str] | None) -> list[Job]:
        """The slow way."""
        may_go = [
            job
            for job in self.ready
            if (names is None or job.options.name in names)
            and self.closed.get(lane_key(job), 0) <= self.now_ms
        ]
        return sorted(may_go, key=lambda job: (-job.options.priority, job.order))

    def chosen(self, limit: int, names: frozenset[str] | None) -> list[Job]:
        chosen = Choice(limit, 1 << 30, is_idle=True)
        if limit:
            choose(self.queue, names, Now(0, self.now_ms), 0, chosen)
        assert all(isinstance(item, Job) for item in chosen.items)
        return [item for item in chosen.items if isinstance(item, Job)]


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["put", "put", "lease", "back", "cancel", "close", "open", "wait"]),
            st.integers(0, 1 << 16),
        ),
        max_size=80,
    ),
    merged_max=st.sampled_from([0, 2, 64]),
    heaps_max=st.sampled_from([1, 8]),
    spare=st.sampled_from([0, 1_000]),
)
@settings(deadline=None)
def test_what_goes_out_is_what_a_sorted_list_says(steps, merged_max, heaps_max, spare):
    """Whatever was put, leased, given back, cancelled, closed and opened, for all sets of names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranks, "LANES_MERGED_MAX", merged_max)
        patch.setattr(open_lanes, "FEW_MAX", min(merged_max, 2))
        patch.setattr(ranks, "HEADS_MAX", heaps_max)
        patch.setattr(ranks, "HEADS_SPARE", spare)
        model = Model()
        for step, draw in steps:
            getattr(model, step)(draw)
            names = model.names(draw)
            assert model.chosen(1_000, names) == model.expected(names)
            assert model.queue.counts[JobState.READY] == len(model.ready)
