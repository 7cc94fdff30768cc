"""Groups that let many jobs run at a time: what a step costs does not grow with their number."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jobline_server.engine.decide.admin import decide_cancel, decide_delete_waiting
from jobline_server.engine.group import Group
from jobline_server.engine.group_settings import GroupSettings
from tests.unit.engine.lines_run import lines_run
from tests.unit.engine.test_apply_groups import push
from tests.unit.engine.world import World, leases_of

FEW, MANY = 4, 400
WAITING = 100


def _busy(running: int) -> tuple[World, list[int]]:
    """A group of which as many run as may, and jobs that wait; returns their ids, too."""
    world = World()
    world.settings(group=GroupSettings(concurrency=running))
    push(world, *["g"] * running)
    assert len(world.ids(running)) == running
    return world, push(world, *["g"] * WAITING)


def _later(lines: Callable[[int], int], *sizes: int) -> list[int]:
    """The lines of each size, after a call that pays for what is remembered by type."""
    lines(sizes[0])
    return [lines(size) for size in sizes]


@pytest.mark.parametrize("decide", [decide_cancel, decide_delete_waiting])
def test_jobs_that_wait_leave_a_group_of_which_many_run(decide):
    """In as many steps as one of which few run: a thousand of them took 50 ms."""

    def lines(running: int) -> int:
        world, waiting = _busy(running)
        return lines_run(lambda: decide(world.shard, world.now, waiting))

    few, many = _later(lines, FEW, MANY)
    assert many == few


def test_jobs_that_run_leave_a_group_in_any_order():
    """The next ones take their places, and none is searched for."""

    def lines(running: int) -> int:
        world = World()
        world.settings(group=GroupSettings(concurrency=running))
        push(world, *["g"] * 2 * MANY)
        leased = leases_of(world.lease(running))
        return lines_run(lambda: world.ack(leased[: -FEW - 1 : -1]))

    few, many = _later(lines, FEW, MANY)
    assert many <= few + 10


def test_push_to_a_group_of_which_many_run_does_not_count_them():
    """Unless it is nearly full."""

    def lines(running: int) -> int:
        world, _ = _busy(running)
        return lines_run(lambda: push(world, "g"))

    few, many = _later(lines, FEW, MANY)
    assert many == few


def test_a_group_has_a_table_of_admitted_jobs_while_there_are_several(world):
    """Most groups have one at a time."""
    first, second, third = (world.shard.jobs[job_id] for job_id in push(world, "", "", ""))
    group = Group("q", "g")
    assert list(group.admitted) == []
    group.admit(first)
    assert list(group.admitted) == [first]
    group.admit(second)
    assert not group.dismiss(third)
    group.admit(third)
    assert list(group.admitted) == [first, second, third]
    assert group.dismiss(second)
    assert not group.dismiss(second)
    assert list(group.admitted) == [first, third]
    assert group.dismiss(third)
    assert group.dismiss(first)
    assert list(group.admitted) == []
    group.admit(third)
    assert group.has_admitted(third)
    assert group.dismiss_all() == [third]
    assert not group.has_admitted(third)
