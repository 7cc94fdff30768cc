"""Counts of the jobs of a group, in a queue with tenants and in one without."""

from __future__ import annotations

import pytest

from jobline_server.engine.group import Group
from jobline_server.engine.group_counts import active_of, ready_of
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS
from tests.pushed_rows import NewJob
from tests.unit.engine.fair_world import FairWorld
from tests.unit.engine.world import World


def counts(world: World, name: str) -> tuple[int, int]:
    queue = world.queue()
    group = queue.groups.find(name) or Group("q", name)
    return active_of(queue, group), ready_of(queue, group)


@pytest.mark.parametrize("world", [World(), FairWorld()], ids=["plain", "fair"])
def test_ready_jobs_of_a_group_are_counted_whether_they_may_run_or_wait(world: World) -> None:
    jobs = [NewJob(b"x", DEFAULT_OPTIONS, ties=Ties("g")) for _ in range(3)]
    world.push(jobs=jobs)
    assert counts(world, "g") == (0, 3)
    job = world.one()
    assert counts(world, "g") == (1, 2)
    world.ack([(job.id, job.delivery)])
    assert counts(world, "g") == (0, 2)
    assert counts(world, "other") == (0, 0)
