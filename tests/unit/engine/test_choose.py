"""Which jobs go next: priority, then first ready first out, as far as there is room and disk."""

from __future__ import annotations

import pytest

from jobline_server.engine.commands import Push
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.decide.choice import Choice, LotRun
from jobline_server.engine.decide.choose import choose
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS


def chosen(world, jobs=100, size=1 << 20, *, names=None, is_idle=True) -> list[tuple[int, int]]:
    """(id, count) of what would go out."""
    found = Choice(jobs, size, is_idle=is_idle)
    choose(world.queue(), names, world.now, world.shard.committed, found)
    assert found.has_runs == any(isinstance(item, LotRun) for item in found.items)
    return [(one.id, one.count if isinstance(one, LotRun) else 1) for one in found.items]


def test_higher_priority_goes_first_whatever_came_first(world):
    low, high = world.row(priority=1), world.row(priority=2)
    assert chosen(world) == [(high, 1), (low, 1)]


def test_names_of_one_priority_go_in_the_order_they_became_ready(world):
    ids = [world.row(name=name) for name in "abacb"]
    assert chosen(world) == [(job_id, 1) for job_id in ids]


def test_only_handled_names_go_and_the_others_hold_nobody_up(world):
    ids = [world.row(name=name) for name in "abc"]
    assert chosen(world, names=frozenset({"b", "c"})) == [(ids[1], 1), (ids[2], 1)]
    assert chosen(world, names=frozenset({"z"})) == []


def test_lots_and_single_jobs_stand_in_one_line(world):
    first, lot, last = world.row(), world.plain(b"1", b"2", b"3").first_id, world.row()
    assert chosen(world) == [(first, 1), (lot, 3), (last, 1)]
    assert chosen(world, 3) == [(first, 1), (lot, 2)]
    assert chosen(world, 4) == [(first, 1), (lot, 3)]


def test_several_lots_go_out_together(world):
    lots = [world.plain(b"1", b"2").first_id for _ in range(3)]
    assert chosen(world, 5) == [(lots[0], 2), (lots[1], 2), (lots[2], 1)]


def test_members_that_are_gone_part_a_lot_into_stretches(world):
    lot = world.plain(*[b"x"] * 6).first_id
    decide_cancel(world.shard, world.now, [lot, lot + 3])
    assert chosen(world) == [(lot + 1, 2), (lot + 4, 2)]
    assert chosen(world, 3) == [(lot + 1, 2), (lot + 4, 1)]


def test_what_is_not_on_disk_stays_and_lower_priorities_go(world):
    low = world.row(priority=-1)
    decide_push(world.shard, world.now, Push("q", DEFAULT_OPTIONS, payloads=Payloads.of([b"1"])))
    assert chosen(world) == [(low, 1)]
    world.commit()
    assert len(chosen(world)) == 2


@pytest.mark.parametrize(("size", "count"), [(0, 0), (1, 0), (2, 1), (5, 2), (6, 3), (99, 4)])
def test_bytes_bound_what_goes_out_job_by_job(world, size, count):
    lot = world.plain(b"aa", b"bb", b"cc", b"dd").first_id
    assert chosen(world, size=size, is_idle=False) == ([(lot, count)] if count else [])


@pytest.mark.parametrize(("size", "count"), [(0, 1), (3, 2), (5, 3), (8, 3), (9, 4)])
def test_payloads_of_different_sizes_count_as_they_are(world, size, count):
    """An empty one always fits behind what fits."""
    lot = world.plain(b"", b"bbb", b"cc", b"dddd").first_id
    assert chosen(world, size=size, is_idle=False) == [(lot, count)]


def test_one_job_of_any_size_fits_who_has_nothing(world):
    """Else it would never be handed out."""
    big, _ = world.row(b"x" * 50), world.row(b"y")
    assert chosen(world, size=10) == [(big, 1)]
    assert chosen(world, size=10, is_idle=False) == []


def test_first_member_of_a_lot_fits_who_has_nothing(world):
    lot = world.plain(b"x" * 50, b"y" * 50).first_id
    assert chosen(world, size=10) == [(lot, 1)]
    assert chosen(world, size=10, is_idle=False) == []
    world.row(b"z", priority=1)
    assert len(chosen(world, size=10)) == 1


def test_jobs_without_payload_fit_when_there_is_no_room_left(world):
    big = world.row(b"x" * 50)
    lot = world.plain(b"", b"").first_id
    assert chosen(world, size=50) == [(big, 1), (lot, 2)]


def test_room_for_one_job_is_filled_by_one(world):
    first, _ = world.row(), world.row()
    assert chosen(world, 1) == [(first, 1)]
