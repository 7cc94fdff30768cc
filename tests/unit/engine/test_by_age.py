"""Which jobs go next in a queue whose jobs age."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobline_server.engine import limits
from jobline_server.engine.ageing import Ageing
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.decide.by_age import AgedAt, by_age
from jobline_server.engine.rules import JobRules
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, QueueSettings
from tests.pushed_rows import NewJob
from tests.unit.engine.world import World, leases_of

LIFO = JobRules(lifo=True)


@pytest.fixture
def world() -> World:
    return aging(Ageing(1_000))


def aging(ageing: Ageing, *, fair: bool = False) -> World:
    """A world whose queue has jobs that age."""
    world = World()
    done = world.row()
    world.settings(ageing=ageing, fair=fair)
    decide_cancel(world.shard, world.now, [done])
    world.commit()
    return world


def test_a_job_that_has_waited_goes_before_a_higher_one(world: World) -> None:
    """G12: by aged priority; as high as another one it goes first if it is first in line."""
    low = world.row(priority=0)
    world.advance(1_999)
    first = world.row(priority=2)
    assert world.ids(1) == [first]
    world.advance(1)
    world.row(priority=2)
    assert world.ids(1) == [low]


def test_the_highest_goes_first_while_none_has_aged(world: World) -> None:
    ids = [world.row(priority=priority) for priority in (1, 3, 2)]
    world.advance(999)
    assert world.ids() == [ids[1], ids[2], ids[0]]


def test_all_jobs_age(world: World) -> None:
    """What waits as long stays behind what is higher."""
    low, high = world.row(priority=0), world.row(priority=1)
    world.advance(100_000)
    assert world.ids() == [high, low]


def test_no_job_rises_above_the_limit() -> None:
    world = aging(Ageing(1_000, 2, 3))
    low = world.row(priority=0)
    world.advance(100_000)
    high, highest = world.row(priority=3), world.row(priority=4)
    assert world.ids() == [highest, low, high]


def test_lots_stay_lots(world: World) -> None:
    """One run lease each, in turn with others; a run ends where the room does."""
    old = world.plain(*[b"x"] * 3).first_id
    world.advance(5_000)
    high = world.plain(*[b"x"] * 3, options=replace(DEFAULT_OPTIONS, priority=4)).first_id
    new = world.plain(*[b"x"] * 3).first_id
    leased = world.lease(7)
    assert [(run.first_id, len(run.payloads)) for run in leased.runs] == [
        (old, 3),
        (high, 3),
        (new, 1),
    ]


def test_jobs_of_one_priority_keep_their_order(world: World) -> None:
    """Across names, and a `lifo` job is first in its priority, however young: its age counts."""
    old = world.row(priority=0)
    world.advance(3_000)
    young = world.row(priority=0, rules=LIFO)
    mail = world.row(priority=0, name="mail")
    high = world.row(priority=2)
    assert world.ids() == [high, young, old, mail]


def test_consumers_get_what_they_may_have(world: World) -> None:
    """Names, and jobs that are on disk and not too large."""
    mail = world.row(priority=0, name="mail")
    large = world.row(b"x" * 50, priority=0, name="mail")
    world.advance(3_000)
    high = world.row(priority=1, name="other")
    assert world.ids(1, names=frozenset({"other", "none"})) == [high]
    assert world.ids(names=frozenset({"mail"}), max_bytes=20) == [mail]
    assert world.ids() == [large]


def test_what_is_not_on_disk_offers_nothing(world: World) -> None:
    """G3: but a `lifo` job that is not holds nobody up, and so in lanes of several names."""
    low = world.row(priority=0)
    mail = world.row(priority=0, name="mail")
    world.advance(9_000)
    on_disk = world.shard.committed
    world.row(priority=0, rules=LIFO)
    world.row(priority=1)
    for job_id in (low, mail):
        world.shard.committed = on_disk
        assert world.ids(1) == [job_id]


def test_large_jobs_are_not_offered_to_who_takes_none(world: World) -> None:
    large, small = world.row(b"x" * 50), world.row()
    queue = world.queue()
    ranks = queue.open.some_fronts(None, None, seed=0)
    aged_at = AgedAt(Ageing(1_000), world.now.wall_ms)
    assert list(by_age(ranks, 1 << 40, 10, aged_at)) == []
    ranks = queue.open.some_fronts(None, None, seed=0)
    found = [item.place()[1] for item in by_age(ranks, 1 << 40, 100, aged_at)]
    assert found == [large, small]


def test_tenants_of_a_fair_queue_age_each_for_itself() -> None:
    """G23: age is no way before another tenant."""
    world = aging(Ageing(1_000), fair=True)
    rows = [NewJob(b"x", DEFAULT_OPTIONS, ties=Ties("old"))]
    old = world.push(jobs=rows).first_id
    world.advance(5_000)
    options = replace(DEFAULT_OPTIONS, priority=3)
    ids = [world.push(jobs=[NewJob(b"x", options, ties=Ties(name))]).first_id
           for name in ("old", "new")]  # fmt: skip
    assert sorted(world.ids(2)) == sorted([old, ids[1]])
    world.check()


def test_settings_change_for_all_jobs_at_once(world: World) -> None:
    low = world.row(priority=0)
    world.advance(5_000)
    high = world.row(priority=3)
    world.settings()
    assert world.ids(1) == [high]
    world.settings(ageing=Ageing(5_000, 9))
    again = world.row(priority=8)
    assert world.ids() == [low, again]


def test_order_is_the_same_after_a_restart(world: World) -> None:
    """From the journal; `tests/storage` compares checkpoints."""
    ids = [world.row(priority=priority) for priority in (0, 0, 5)]
    (first,) = leases_of(world.lease(1))
    world.advance(2_000)
    world.fail(*first, retry_after_ms=1_000)
    world.tick(1_000)
    before = [world.shard.jobs[one].waits_from_ms() for one in ids]
    again = world.recovered()
    assert [again.jobs[one].waits_from_ms() for one in ids] == before


def test_of_many_priorities_some_are_compared_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The highest, and others in turn: none of a hundred is left out for long."""
    monkeypatch.setattr(limits, "AGED_PRIORITIES_MAX", 10)
    world = aging(Ageing(1_000_000))
    for priority in range(100):
        world.row(priority=priority, name=f"{priority % 3}")
    lanes = world.queue().open
    seen: set[int] = set()
    for seed in range(95):
        found = [priority for priority, _ in lanes.some_fronts(None, None, seed=seed)]
        assert found[:5] == [99, 98, 97, 96, 95]
        assert len(found) == 10
        assert found == sorted(found, reverse=True)
        seen.update(found)
    assert len(seen) == 100
    named = list(lanes.some_fronts(frozenset({"1"}), None, seed=3))
    assert [priority for priority, _ in named][:5] == [97, 94, 91, 88, 85]
    assert all(priority % 3 == 1 for priority, _ in named)
    for name in "abc":
        world.row(priority=99, name=name)
    named = list(lanes.some_fronts(frozenset({"1"}), None, seed=3))
    assert named[0][0] == 97
    assert AgedAt(Ageing(1), 5).seed() != AgedAt(Ageing(1), 6).seed()


def test_ageing_costs_nothing_where_it_is_off() -> None:
    """No priority is looked at but the highest."""
    world = World()
    for priority in range(50):
        world.row(priority=priority)
    assert QueueSettings().ageing is None
    assert len(world.ids(1)) == 1


@settings(max_examples=50, deadline=None)
@given(
    priority=st.integers(-20, 4),
    after_ms=st.integers(100, 3_000),
    step=st.integers(1, 6),
    every_ms=st.integers(50, 99),
    backlog=st.integers(0, 5),
)
def test_low_priorities_do_not_starve(
    priority: int, after_ms: int, step: int, every_ms: int, backlog: int
) -> None:
    """G12: with a new job of priority 5 for each one that is served, one of a lower priority goes
    as soon as it has risen as high as those have that were pushed before it was.
    """
    world = aging(Ageing(after_ms, step))
    for _ in range(backlog):
        world.row(priority=5)
    low = world.row(priority=priority)
    # The first of the others waits for the whole backlog.
    rises = -(-(5 - priority) // step) + backlog * every_ms // after_ms + 1
    for _ in range(rises * after_ms // every_ms + backlog + 2):
        world.row(priority=5)
        if world.ids(1) == [low]:
            return
        world.advance(every_ms)
    raise AssertionError("it was not served in time")
