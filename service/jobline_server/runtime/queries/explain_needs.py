"""Explains that no connected worker has what a job needs: a version, or places in its window."""

from __future__ import annotations

from collections.abc import Sequence

from jobline_server.dispatch.consumer import Consumer, has_room
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.versions import is_new_enough
from jobline_server.runtime.obstacles import Obstacle, ObstacleKind


def worker_missing(owner: Job | Lot, consumers: Sequence[Consumer]) -> Obstacle | None:
    """Returns the obstacle if none of the consumers of a queue that handle the name of a job may
    have it; None if the job needs nothing, or one may.
    """
    rules, queue = owner.options.rules, owner.queue.name
    if rules is NO_RULES:
        return None
    names = ((consumer, consumer.names_for(queue)) for consumer in consumers)
    name = owner.options.name
    handling = [consumer for consumer, handled in names if handled is None or name in handled]
    minimum = rules.min_worker_version
    new_enough = [one for one in handling if is_new_enough(one.version, minimum)]
    if not new_enough:
        versions = sorted({consumer.version or "none" for consumer in handling})
        message = (
            f"it needs a worker of version {minimum} or newer; those of queue {queue} that handle "
            f"its name have {', '.join(versions[:5])}"
        )
        return Obstacle(ObstacleKind.WORKER_VERSION, message)
    slots, with_room = rules.slots or 1, [one for one in new_enough if has_room(one)]
    if with_room and not any(_fits(consumer, slots) for consumer in with_room):
        message = f"it takes {slots} places of its worker's window, and no worker has so many free"
        return Obstacle(ObstacleKind.SLOTS, message, count=slots)
    return None


def _fits(consumer: Consumer, slots: int) -> bool:
    return consumer.room()[0] >= slots or not consumer.in_flight.jobs
