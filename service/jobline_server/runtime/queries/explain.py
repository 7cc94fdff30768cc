"""Explains why a job is not running, from the engine's state; each check is independent."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, islice, takewhile

from jobline_server.dispatch.consumer import Consumer, has_room
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.items import Item
from jobline_server.engine.job import Job
from jobline_server.engine.lane import place_of
from jobline_server.engine.lot import Lot
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import EndReason, JobState
from jobline_server.runtime.core import Core
from jobline_server.runtime.obstacles import Obstacle, ObstacleKind
from jobline_server.runtime.queries.explain_ageing import aged_ahead, aged_at, risen
from jobline_server.runtime.queries.explain_blocked import blocked_by
from jobline_server.runtime.queries.explain_groups import (
    group_obstacles,
    rate_of_group,
    reserved_for,
)
from jobline_server.runtime.queries.explain_limits import limiters_of, limits_of
from jobline_server.runtime.queries.explain_needs import worker_missing
from jobline_server.runtime.queries.explain_tenants import lanes_of, tenant_obstacles
from jobline_server.runtime.queries.job_queries import JobQueries
from jobline_server.runtime.views import JobView

# The most lanes and items of lanes checked for one explanation.
WALK_MAX = 10_000


class JobExplainer:
    """Explains single jobs."""

    def __init__(self, core: Core, queries: JobQueries) -> None:
        self._core = core
        self._queries = queries

    async def explain_job(self, job_id: int) -> tuple[JobState, list[Obstacle]]:
        """Returns the state of a job and its obstacles; none if it is about to be handed out.
        Raises `Refused` with JOB_NOT_FOUND.
        """
        slot = self._core.slots.of_id(job_id)
        shard = slot.shard if slot is not None else None
        state = shard.state_of(job_id) if shard is not None else None
        if shard is None or state is None:
            view = await self._queries.get_job(job_id)
            return view.state, [Obstacle(ObstacleKind.ENDED, _ended(view), view.delete_ms)]
        owner = shard.jobs.find(job_id) or shard.lots.find(job_id)
        if owner is None:
            raise Refused(RefusalKind.JOB_NOT_FOUND, f"there is no job {job_id}", field="id")
        if state is JobState.ACTIVE:
            return state, [self._running(job_id)]
        if state is JobState.SCHEDULED:
            until_ms = owner.run_at_ms
            return state, [Obstacle(ObstacleKind.NOT_DUE, "its time has not come", until_ms)]
        if state is JobState.BLOCKED and isinstance(owner, Job):
            return state, blocked_by(shard, owner)
        return state, self._waiting(shard, owner, job_id)

    def _running(self, job_id: int) -> Obstacle:
        view = self._queries.live(job_id)
        worker = view.worker if view is not None else ""
        until_ms = view.lease_until_ms if view is not None else 0
        who = f"worker {worker!r}" if worker else "a caller of Pull"
        return Obstacle(ObstacleKind.RUNNING, f"{who} has it", until_ms)

    def _waiting(self, shard: Shard, owner: Job | Lot, job_id: int) -> list[Obstacle]:
        queue, name = owner.queue, owner.options.name
        obstacles: list[Obstacle] = []
        if owner.offset > shard.committed:
            message = "its push is not on disk yet"
            obstacles.append(Obstacle(ObstacleKind.NOT_DURABLE, message))
        if queue.paused:
            who = f" by {queue.paused_by}" if queue.paused_by else ""
            why = f": {queue.pause_reason}" if queue.pause_reason else ""
            message = f"queue {queue.name} is paused{who}{why}"
            obstacles.append(Obstacle(ObstacleKind.QUEUE_PAUSED, message))
        if queue.allowance is not None:
            obstacles += limits_of(queue, queue.allowance, owner, self._core.now())
        obstacles += limiters_of(shard.limiters, owner, self._core.now())
        consumers = self._core.rings.consumers(queue.name)
        if not consumers:
            message = f"no connected worker takes from queue {queue.name}"
            obstacles.append(Obstacle(ObstacleKind.NO_WORKER, message))
        elif not self._core.rings.handles(queue.name, name):
            message = f"no connected worker of queue {queue.name} handles the name {name!r}"
            obstacles.append(Obstacle(ObstacleKind.UNHANDLED_NAME, message))
        elif (missing := worker_missing(owner, consumers)) is not None:
            obstacles.append(missing)
        elif _largest(owner, job_id) > _largest_taken(consumers, queue.name, name):
            message = (
                f"its payload of {_largest(owner, job_id):,} bytes is larger than any connected "
                f"worker of queue {queue.name} takes; one that does says so: max_message_bytes"
            )
            obstacles.append(Obstacle(ObstacleKind.TOO_LARGE, message))
        elif not any(map(has_room, consumers)):
            count = len(consumers)
            workers = "the only worker" if count == 1 else f"all {count} workers"
            message = f"{workers} of queue {queue.name} {'is' if count == 1 else 'are'} busy"
            obstacles.append(Obstacle(ObstacleKind.WORKERS_BUSY, message, count=count))
        if isinstance(owner, Job):
            obstacles += reserved_for(shard, owner)
            obstacles += rate_of_group(shard, owner, self._core.now())
        return [*obstacles, *self._ahead(owner, job_id)]

    def _ahead(self, owner: Job | Lot, job_id: int) -> list[Obstacle]:
        """Returns what its group says, or else how many jobs go before it."""
        queue = owner.queue
        rivals = self._rivals(queue, owner.options.name)
        held: list[Obstacle] = []
        if queue.fair is not None:
            held = tenant_obstacles(queue.fair, owner)
        elif isinstance(owner, Job):
            held = group_obstacles(owner)
        if held:
            return held
        aged = aged_at(queue, self._core.wall_ms())
        if aged is None:
            ahead, is_all = jobs_ahead(queue, owner, job_id, rivals)
        else:
            ahead, is_all = aged_ahead(lanes_of(queue, owner), owner, rivals, aged)
            ahead += _members_before(owner, job_id)
        if not ahead:
            return []
        go = "job goes" if ahead == 1 else "jobs go"
        at_least = "" if is_all else "at least "
        message = f"{at_least}{ahead:,} {go} before it{risen(owner, aged)}"
        return [Obstacle(ObstacleKind.JOBS_AHEAD, message, count=ahead)]

    def _rivals(self, queue: Queue, name: str) -> frozenset[str] | None:
        """Returns all names handled by workers of this name: their jobs may go before this one.
        None: any name, also while there is no such worker.
        """
        handled: set[str] = set()
        for consumer in self._core.rings.consumers(queue.name):
            names = consumer.names_for(queue.name)
            if names is None:
                return None
            if name in names:
                handled |= names
        return frozenset(handled) or None


def _largest(owner: Job | Lot, job_id: int) -> int:
    if isinstance(owner, Job):
        return len(owner.payload)
    return owner.payloads.size_of(job_id - owner.first_id)


def _largest_taken(consumers: Iterable[Consumer], queue: str, name: str) -> int:
    """Returns the largest payload that a consumer of this name takes."""
    handling = ((consumer, consumer.names_for(queue)) for consumer in consumers)
    return max(
        (
            consumer.payload_bytes_max
            for consumer, names in handling
            if names is None or name in names
        ),
        default=0,
    )


def _ended(view: JobView) -> str:
    """Returns how a job ended, and its own retention."""
    retention, terms = view.options.retention, []
    if retention.age_ms is not None:
        terms.append(f"for {retention.age_ms / 1_000:g} s")
    if retention.count is not None:
        terms.append(f"beside {retention.count:,} that ended after it")
    if retention.delete_after_ms is not None:
        terms.append(f"for {retention.delete_after_ms / 1_000:g} s more as STALE")
    kept = f"; by its own options it is kept {' and '.join(terms)}" if terms else ""
    why = f" ({view.reason.name.lower()})" if view.reason else ""
    if view.reason is EndReason.EXPIRED:
        why = ": its TTL ended before it ran"
    return f"it is {view.state.name}{why}{kept}"


def jobs_ahead(
    queue: Queue, owner: Job | Lot, job_id: int, names: frozenset[str] | None
) -> tuple[int, bool]:
    """Returns how many ready jobs of these names (None: any) go before this one, and whether all
    were counted. Jobs of higher priority go before it, and jobs of the same priority that were
    ready first; in a fair queue only those of its tenant are counted. Checks up to `WALK_MAX` lanes
    and items, so that it does not block the loop.
    """
    place = owner.order, job_id
    ahead, left = _of_higher_priority(queue, owner, names)
    for lane in lanes_of(queue, owner).lanes_up_to(owner, names):
        left -= 1
        if left <= 0:
            break
        for item in islice(lane, left):
            left -= 1
            if item is owner:
                ahead += _members_before(item, job_id)
            elif place_of(item) < place:
                ahead += item.waiting() if isinstance(item, Lot) else item.is_ready()
            else:
                break
    return ahead, left > 0


def _of_higher_priority(
    queue: Queue, owner: Job | Lot, names: frozenset[str] | None
) -> tuple[int, int]:
    """Returns how many ready jobs of these names have a higher priority, and how many lanes and
    items may be checked after that.
    """
    priority = owner.options.priority
    if names is None and queue.fair is None:
        higher = takewhile(lambda of_one: of_one[0] > priority, queue.ready.priorities())
        counts = [ready for _, ready in islice(higher, WALK_MAX)]
    else:
        lanes = chain.from_iterable(lanes_of(queue, owner).ranks(names))
        above = takewhile(lambda lane: lane.priority > priority, lanes)
        counts = [lane.ready for lane in islice(above, WALK_MAX)]
    return sum(counts), WALK_MAX - len(counts)


def _members_before(owner: Item, job_id: int) -> int:
    """Returns how many waiting jobs of the same lot go before this one."""
    if not isinstance(owner, Lot):
        return 0
    index = job_id - owner.first_id
    return index - owner.cursor - sum(owner.cursor <= i < index for i in owner.holes)
