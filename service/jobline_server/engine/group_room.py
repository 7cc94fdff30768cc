"""Room in groups: how many more jobs may wait in one, and how many groups there may be.

The same rule holds for pushes and for retries of ended jobs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.group import max_waiting
from jobline_server.engine.group_counts import active_of
from jobline_server.engine.group_settings import NO_GROUP_SETTINGS
from jobline_server.engine.load import Load
from jobline_server.engine.queue import Queue

# Groups make room as their jobs end, so a retry makes sense soon.
RETRY_AFTER_MS = 1_000


class GroupRoom:
    """The room left while jobs of groups are admitted one after another, before the load counts
    them.
    """

    def __init__(self, load: Load) -> None:
        self._load = load
        self._new = 0
        self._by_group: Counter[tuple[str, str]] = Counter()

    def refusal(
        self, queue: Queue | None, names: Iterable[str], leaving: Iterable[str] = ()
    ) -> Refused | None:
        """Admits jobs of these groups, one name per job, and returns None, or returns a refusal if
        any do not fit. A queue that does not exist yet (None) has no groups. "" is no group.
        `leaving` are the groups of waiting jobs whose place they take.
        """
        wanted = Counter(names)
        del wanted[""]
        left = Counter(leaving)
        of_queue = "" if queue is None else queue.name
        for name, count in wanted.items():
            jobs = count + self._by_group[of_queue, name] - left[name]
            refusal = _refusal_of_depth(queue, name, jobs) if jobs > 0 else None
            if refusal is not None:
                return refusal
        new = [
            name
            for name in wanted
            if (of_queue, name) not in self._by_group
            and (queue is None or queue.groups.find(name) is None)
        ]
        refusal = self.refusal_of_new(len(new))
        if refusal is None:
            self._by_group.update({(of_queue, name): count for name, count in wanted.items()})
        return refusal

    def refusal_of_new(self, count: int) -> Refused | None:
        """Admits new groups and returns None, or returns a refusal if there are too many."""
        load = self._load
        groups = load.groups + load.group_buckets + self._new + count
        if count and groups > load.groups_max:
            message = f"the server has {load.groups} of {load.groups_max} groups"
            if load.group_buckets:
                message += f", and remembers the tokens of {load.group_buckets} that are gone"
            return Refused(RefusalKind.GROUPS_FULL, message, retry_after_ms=RETRY_AFTER_MS)
        self._new += count
        return None


def _refusal_of_depth(queue: Queue | None, name: str, count: int) -> Refused | None:
    group = None if queue is None else queue.groups.find(name)
    own = NO_GROUP_SETTINGS if group is None else group.settings
    limit = max_waiting(own, NO_GROUP_SETTINGS if queue is None else queue.settings.group)
    if limit is None and queue is not None and queue.fair is not None:
        return None
    limit = limit or limits.GROUP_WAITING_MAX
    live = 0 if group is None else group.live
    if live + count <= limit:
        # Without counting which of them are ACTIVE.
        return None
    waiting = live if group is None or queue is None else live - active_of(queue, group)
    if waiting + count <= limit:
        return None
    message = f"group {name} has {waiting} of {limit} waiting jobs"
    return Refused(RefusalKind.GROUP_FULL, message, retry_after_ms=RETRY_AFTER_MS)
