"""Sticky: whether a session that gets a job also had the job before it in its group.

What a worker keeps of an entity in memory is true only then: no other consumer has had a job of the
group meanwhile. Of a group whose jobs run beside each other nobody can say that.
"""

from __future__ import annotations

from collections.abc import Iterable

from jobline_server.engine.commands import Leased
from jobline_server.engine.decide.choice import LotRun
from jobline_server.engine.group import concurrency
from jobline_server.engine.holder import Holder
from jobline_server.engine.job import Job
from jobline_server.engine.queue import Queue
from jobline_server.engine.view import ShardView


def continued_jobs(
    shard: ShardView, queue: Queue, holder: Holder, items: Iterable[Job | LotRun]
) -> list[int]:
    """Returns which of the single jobs that a consumer is about to get continue their group, by
    their index among the single jobs. Call it before they are leased.
    """
    if not holder.session_id:
        return []
    jobs = [item for item in items if isinstance(item, Job)]
    return [at for at, job in enumerate(jobs) if _continues(shard, queue, holder, job.ties.group)]


def mark_continued(leased: Leased, indexes: Iterable[int]) -> None:
    """Says in a reply which of its single jobs continue their group."""
    for at in indexes:
        leased.jobs[at].continues_group = True


def _continues(shard: ShardView, queue: Queue, holder: Holder, name: str) -> bool:
    if queue.fair is not None:
        return False
    if not name or shard.sticky.last.find(queue.name, name) != holder.session_id:
        return False
    group = queue.groups.find(name)
    return group is not None and concurrency(group.settings, queue.settings.group) == 1
