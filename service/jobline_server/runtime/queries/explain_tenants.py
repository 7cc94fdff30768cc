"""Explains what holds a job of a fair queue back: its tenant, or other tenants."""

from __future__ import annotations

from itertools import islice

from jobline_server.engine.fair import FairShare
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.open_lanes import OpenLanes
from jobline_server.engine.queue import Queue
from jobline_server.runtime.obstacles import Obstacle, ObstacleKind
from jobline_server.runtime.queries.explain_groups import stopped

# The most tenants that are looked at for one explanation.
WALK_MAX = 10_000


def lanes_of(queue: Queue, owner: Job | Lot) -> OpenLanes:
    """Returns the open lanes that a READY job competes in: those of its tenant in a fair queue."""
    if queue.fair is None or not owner.tenant:
        return queue.open
    return queue.fair.known(owner.tenant).open


def tenant_obstacles(fair: FairShare, owner: Job | Lot) -> list[Obstacle]:
    """Returns why the tenant of a READY job is not served now; none if its turn has come."""
    group = fair.groups.find(owner.tenant)
    found = [] if group is None else stopped(group, fair.defaults)
    tenant = fair.known(owner.tenant)
    if not found and not fair.room_of(tenant):
        active = tenant.active
        message = f"{active:,} of its group are active, as many as may be"
        found.append(Obstacle(ObstacleKind.GROUP_BUSY, message, count=active))
    if not found:
        ahead = sum(1 for _ in islice(fair.before(tenant), WALK_MAX))
        if ahead:
            goes = "group, or the jobs without one, has" if ahead == 1 else "groups have"
            at_least = "at least " if ahead == WALK_MAX else ""
            message = f"{at_least}{ahead:,} {goes} used less worker time for their weight"
            found.append(Obstacle(ObstacleKind.OTHER_TENANTS, message, count=ahead))
    return found
