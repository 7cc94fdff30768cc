"""Groups ↔ the items of a checkpoint: what their jobs do not say.

A job says which group it is of, and whether it is admitted; those that wait stand in the order in
which they became READY.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobline.v1 import store_pb2
from jobline_server.engine.allowance import TimeLimit
from jobline_server.engine.apply.groups import join, known_group, wait
from jobline_server.engine.group import Group
from jobline_server.engine.job import Job
from jobline_server.engine.lane import place_of
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState
from jobline_server.storage.kinds.by_id import by_id
from jobline_server.storage.kinds.loading import Loading
from jobline_server.storage.kinds.table import DurableKind
from jobline_server.storage.store import ItemKind, ItemRow
from jobline_server.wire.groups import fill_group_settings, group_settings_from_message


def encode_group(group: Group) -> bytes:
    """Returns the blob of a group, without its jobs."""
    message = store_pb2.StoredGroup()
    message.queue = group.queue
    message.group = group.name
    fill_group_settings(message.settings, group.settings)
    message.paused = group.paused
    message.paused_by = group.paused_by
    message.pause_reason = group.pause_reason
    message.dead_heads.extend(group.dead_heads)
    if group.limited is not None:
        message.limited_until_ms = group.limited.until_ms
        message.limited_by = group.limited.by
        message.limited_reason = group.limited.reason
        message.is_used_up = group.is_used_up
    return message.SerializeToString()


def fill_from(group: Group, message: store_pb2.StoredGroup) -> None:
    """Gives a group what its record says."""
    group.settings = group_settings_from_message(message.settings)
    group.paused = message.paused
    group.paused_by = message.paused_by
    group.pause_reason = message.pause_reason
    group.dead_heads = tuple(message.dead_heads)
    if message.limited_until_ms:
        group.limited = TimeLimit(
            message.limited_until_ms, message.limited_by, message.limited_reason
        )
        group.is_used_up = message.is_used_up
    group.stored = True


def load_groups(loading: Loading, rows: Iterator[ItemRow]) -> None:
    """Loads a page of groups."""
    shard = loading.shard
    for row in rows:
        message = store_pb2.StoredGroup.FromString(row.blob)
        queue = loading.queue_of(message.queue)
        group = known_group(shard, queue, message.group)
        fill_from(group, message)
        group.number = row.key
        shard.group_records[row.key] = group
        shard.use_ids(row.key, 1)
        for job_id in group.dead_heads:
            queue.groups.dead_heads[job_id] = group


def note_member(loading: Loading, job: Job, *, is_admitted: bool) -> None:
    """Counts a job in its group. If it is READY, it goes to its lane, or waits in the group, once
    all items are there.
    """
    queue = job.queue
    join(loading.shard, queue, [job])
    is_ready = job.state is JobState.READY
    if queue.fair is not None:
        if is_ready:
            loading.ready[queue].append(job)
    elif is_admitted:
        known_group(loading.shard, queue, job.ties.group).admit(job)
        if is_ready:
            loading.ready[queue].append(job)
    elif is_ready:
        loading.members[queue].append(job)


def _end_loading(loading: Loading) -> bool:
    for queue, jobs in loading.members.items():
        for job in sorted(jobs, key=place_of):
            group = known_group(loading.shard, queue, job.ties.group)
            if group.admitted or not group.has_room(queue.settings.group):
                wait(queue, group, job)
            else:
                # The job before it was damaged, and is lost.
                group.admit(job)
                loading.shard.changes.jobs.to_write.add(job.id)
                loading.ready[queue].append(job)
    loading.members.clear()
    for queue in loading.shard.queues.values():
        _sort_admitted(queue)
    return False


def _sort_admitted(queue: Queue) -> None:
    for group in queue.groups:
        if len(group.admitted) > 1:
            for job in sorted(group.dismiss_all(), key=place_of):
                group.admit(job)


def _save(_shard: Shard, number: int, group: Group) -> tuple[int, bytes]:
    group.stored = True
    return number, encode_group(group)


GROUPS = DurableKind(
    ItemKind.GROUP,
    load=load_groups,
    slices=by_id(
        ItemKind.GROUP,
        owner=lambda shard: shard.group_records,
        changes=lambda shard: shard.changes.groups,
        save=_save,
    ),
    end_loading=_end_loading,
)
