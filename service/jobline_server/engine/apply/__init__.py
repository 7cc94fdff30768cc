"""Apply: changes the state as a fact says. One function per fact, listed in a table at the end of
each file; no other code changes durable state.

`Shard.emit` calls `apply` for facts just decided and `Shard.replay` for facts of the journal. It
cannot tell which, so recovery yields the same state. It checks that moves are legal (`states`) and
decides nothing.

State that recovery does not need changes without facts: lease clocks, open gates, expired keys and
producers (`Shard.forget_keys`), entries swept from lanes and heaps, and the committed offset.
`storage/loader` builds a shard from the rows of a checkpoint.
"""

from __future__ import annotations

from jobline_server.engine import entries
from jobline_server.engine.apply import (
    add_children,
    batches,
    blocked,
    deletes,
    dependencies,
    ends,
    expired,
    group_changes,
    group_limits,
    leases,
    limiters,
    messages,
    operations,
    phases,
    pushes,
    queues,
    ready,
    reports,
    schedules,
    server_notes,
    unique,
    updates,
    webhooks,
)
from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.state import ShardState

APPLY: ApplyTable = {
    **pushes.APPLY,
    **ready.APPLY,
    **blocked.APPLY,
    **add_children.APPLY,
    **updates.APPLY,
    **dependencies.APPLY,
    **leases.APPLY,
    **reports.APPLY,
    **phases.APPLY,
    **ends.APPLY,
    **expired.APPLY,
    **deletes.APPLY,
    **queues.APPLY,
    **group_changes.APPLY,
    **group_limits.APPLY,
    **limiters.APPLY,
    **schedules.APPLY,
    **messages.APPLY,
    **unique.APPLY,
    **batches.APPLY,
    **operations.APPLY,
    **webhooks.APPLY,
    **server_notes.APPLY,
}


def apply(shard: ShardState, fact: entries.Fact, offset: int) -> None:
    """Applies a fact. `offset` is its position in the journal, 0 for a volatile one."""
    APPLY[type(fact)](shard, fact, offset)
    if shard.unique.freed:
        unique.hand_over_keys(shard, fact.at_ms, offset)
    if shard.batches.live:
        batches.note_ends(shard)
    if shard.dependencies.has_any:
        dependencies.note_ends(shard, fact, volatile=not offset)
    if shard.schedules.by_job:
        schedules.note_ends(shard, fact)
