"""Steps of facts that lease jobs of groups: which session had the last one (`engine/sticky`)."""

from __future__ import annotations

from collections.abc import Sequence

from jobline_server.engine.holder import Holder
from jobline_server.engine.job import Job
from jobline_server.engine.queue import Queue
from jobline_server.engine.state import ShardState
from jobline_server.engine.sticky import unreserve


def note_sticky(shard: ShardState, queue: Queue, jobs: Sequence[Job], holder: Holder) -> None:
    """Records that a session has these jobs, some of which may be sticky; ends their reservations.
    A group whose next jobs are not sticky is forgotten once another consumer has one of them.
    """
    last = shard.sticky.last
    for job in jobs:
        group = job.ties.group
        if not group:
            continue
        if job.options.rules.sticky:
            unreserve(job)
            last.note(queue.name, group, holder.session_id)
        elif last.find(queue.name, group) not in ("", holder.session_id):
            last.note(queue.name, group, "")
