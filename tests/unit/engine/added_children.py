"""Jobs that wait for children which they added, in short words."""

from __future__ import annotations

from jobline_server.engine.decide.add_children import (
    FlowParent,
    decide_add_children,
    decide_set_aside,
)
from jobline_server.engine.values import FailAction
from tests.unit.engine.dependents import CANCELLED, told
from tests.unit.engine.world import World


def add(world: World, job, *children: int, on_failure: bytes = b"") -> None:
    """A leased job waits for these as well, in one commit."""
    parent = FlowParent(job.id, job.delivery, on_failure)
    decide_set_aside(world.shard, world.now, parent, len(children))
    over = {one: CANCELLED for one in children if world.state(one) is None}
    decide_add_children(world.shard, world.now, parent, children, over)
    world.commit()
    world.check()


def end(world: World, *ids: int, how: str = "ack") -> None:
    """Jobs of the queue `below` end, and those that wait are told."""
    world.lease(queue="below")
    for job_id in ids:
        lease, _ = world.shard.find_lease(job_id)
        assert lease is not None
        if how == "ack":
            world.ack([(job_id, lease.delivery)])
        else:
            world.fail(job_id, lease.delivery, then=FailAction.DEAD)
    told(world)


def below(world: World) -> int:
    """A job that may become a child."""
    return world.row(queue="below")
