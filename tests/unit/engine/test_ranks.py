"""Ranks: the lanes of one priority, by size and name, few as they are and many as one."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from jobline_server.engine import open_lanes, ranks
from jobline_server.engine.heads import LaneHeads
from jobline_server.engine.job import Job
from jobline_server.engine.lane import Lane
from jobline_server.engine.queue import Queue
from jobline_server.engine.ranks import Rank
from jobline_server.engine.rules import Needs
from jobline_server.engine.values import DEFAULT_OPTIONS
from tests.unit.engine.test_model import EngineBesideModel

QUEUE = Queue("q", 1, 0)
MANY = ranks.LANES_MERGED_MAX + 1


def a_lane(order: int, name: str, size: int = 0) -> Lane:
    lane = Lane(0, name, size)
    job = Job(order, QUEUE, DEFAULT_OPTIONS, b"", 0)
    job.order = order
    lane.put(job, 1)
    return lane


def a_rank(*lanes: Lane) -> Rank:
    rank = Rank()
    for lane in lanes:
        rank.add(lane)
    return rank


@pytest.fixture
def many() -> Rank:
    """A lane more than are merged, the last one first."""
    return a_rank(*[a_lane(MANY - number, f"n{number}") for number in range(MANY)])


def test_lanes_are_found_by_name_and_size():
    one, large, other = a_lane(1, "a"), a_lane(2, "a", 2), a_lane(3, "b")
    rank = a_rank(one, large, other)
    assert [*rank.lanes(None, None)] == [one, other, large]
    assert [*rank.lanes(None, 1)] == [one, other]
    assert [*rank.lanes(frozenset("a"), None)] == [one, large]
    assert [*rank.lanes(frozenset("axyz"), 2)] == [one, large]
    assert "a" in rank
    assert "x" not in rank


def test_rank_without_lanes_is_empty():
    one, large = a_lane(1, "a"), a_lane(2, "a", 2)
    rank = a_rank(one, large)
    rank.remove(one)
    assert (bool(rank), "a" in rank) == (True, True)
    rank.remove(large)
    assert (bool(rank), "a" in rank) == (False, False)


def test_few_lanes_of_many_are_looked_up_by_name(many):
    assert [type(lane) for lane in many.fronts(frozenset({"n1", "n2"}), None)] == [Lane, Lane]


def test_large_lanes_stand_beside_the_heap_of_the_small_ones(many):
    large = a_lane(0, "n0", 3)
    many.add(large)
    heads, beside = many.fronts(None, None)
    assert isinstance(heads, LaneHeads)
    assert beside is large
    assert len(many.fronts(None, 2)) == 1


def test_each_set_of_many_names_has_a_heap_and_they_have_a_bound(many):
    """The sets that are asked for last keep theirs."""
    sets = [
        frozenset(f"n{number}" for number in range(MANY) if number != left_out)
        for left_out in range(ranks.HEADS_MAX + 1)
    ]
    assert len(sets[0]) <= ranks.LANES_MERGED_MAX
    sets = [names | {"x", "y"} for names in sets]
    first = many.fronts(sets[0], None)
    assert many.fronts(sets[0], None) == first
    kept = [many.fronts(names, None) for names in sets[1:]]
    assert [many.fronts(names, None) for names in sets[1:]] == kept
    assert many.fronts(sets[0], None) != first


def test_new_lane_is_in_the_heaps_of_its_name_alone(many):
    names = frozenset(f"n{number}" for number in range(MANY))
    (all_heads,), (some_heads,) = many.fronts(None, None), many.fronts(names, None)
    many.add(a_lane(-1, "new"))
    assert (len(all_heads), len(some_heads)) == (MANY + 1, MANY)


def test_heaps_of_a_size_go_with_its_last_lane(many):
    large = [a_lane(number, f"n{number}", 1) for number in range(MANY)]
    for lane in large:
        many.add(lane)
    small, heads = many.fronts(None, None)
    for lane in large:
        many.remove(lane)
    assert many.fronts(None, None) == [small]
    for lane in large:
        many.add(lane)
    assert many.fronts(None, None)[1] is not heads


def test_only_lanes_that_begin_early_enough_are_looked_at(many):
    """Of many lanes; of few all are."""
    assert {lane.name for lane in many.lanes_up_to(3, None)} == {f"n{MANY - n}" for n in (1, 2, 3)}
    assert len([*a_rank(a_lane(1, "a"), a_lane(9, "b")).lanes_up_to(3, None)]) == 2


def test_heaps_give_what_a_merge_gives(monkeypatch):
    """Random histories beside the reference model, with a heap for every set of names."""
    monkeypatch.setattr(ranks, "LANES_MERGED_MAX", 0)
    monkeypatch.setattr(open_lanes, "FEW_MAX", 0)
    monkeypatch.setattr(ranks, "HEADS_SPARE", 4)
    run_state_machine_as_test(
        EngineBesideModel,
        settings=settings(
            max_examples=50,
            stateful_step_count=30,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=[*HealthCheck],
        ),
    )


def test_lanes_with_needs_are_found_beside_those_without():
    """One name may have a lane for each limiter that its jobs must pass."""
    plain, limited, versioned = a_lane(1, "a"), a_lane(2, "a"), a_lane(3, "b")
    limited.needs, versioned.needs = Needs(limiters=("smtp",)), Needs("1.2")
    rank = a_rank(plain, limited, versioned)
    assert [*rank.lanes(None, None)] == [plain, limited, versioned]
    assert [*rank.lanes(frozenset("a"), None)] == [plain, limited]
    assert [*rank.lanes(frozenset("bcd"), None)] == [versioned]

    for lane in (plain, limited, versioned):
        assert lane.name in rank
        rank.remove(lane)
    assert (bool(rank), "a" in rank, "b" in rank) == (False, False, False)


def test_many_lanes_of_one_name_are_one_front():
    """A lease from ten thousand limiters does not merge as many lanes."""
    lanes = [a_lane(number, "a") for number in range(MANY)]
    for number, lane in enumerate(lanes):
        lane.needs = Needs(limiters=(f"l{number}",))
    (front,) = a_rank(*lanes).fronts(frozenset("a"), None)
    assert isinstance(front, LaneHeads)
    assert [item.order for item in front.durable(0)] == [*range(MANY)]
