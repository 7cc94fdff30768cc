"""Applies the facts of limits of groups."""

from __future__ import annotations

from jobline_server.engine.allowance import TimeLimit
from jobline_server.engine.apply import groups
from jobline_server.engine.apply.group_changes import hold_back
from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.group_entries import GroupLimited
from jobline_server.engine.state import ShardState
from jobline_server.engine.values import Now


def apply_group_limited(shard: ShardState, fact: GroupLimited, _offset: int) -> None:
    """Has a group let nothing out for a time, or lets it go on."""
    queue = shard.queues[fact.queue]
    group = groups.known_group(shard, queue, fact.group)
    group.is_used_up = fact.is_used_up and fact.until_ms > 0
    if fact.until_ms:
        shard.use_ids(fact.number, 1)
        group.limited = TimeLimit(fact.until_ms, fact.principal, fact.reason)
        hold_back(shard, queue, group, but=frozenset(fact.leased))
    else:
        group.limited = None
    groups.note_record(shard, group, fact.number)
    shard.closed_groups.note(group, Now(fact.at_ms, shard.clocks.mono_ms))
    if group.limited is None:
        groups.admit_next(shard, queue, group)
    groups.forget_if_idle(shard, queue, group)


APPLY: ApplyTable = {GroupLimited: apply_group_limited}
