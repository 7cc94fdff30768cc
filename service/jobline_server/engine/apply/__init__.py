"""Apply: the only code that gives facts effect, one function per fact; a table at the end of each
file says which.

`apply` is called by `Shard.emit` for what was just decided and by `Shard.replay` for what the
journal holds; it cannot tell which, so what is recovered is what was. It checks legality
(`states`) and decides nothing.

What is no fact changes without it, because recovery needs none of it: when workers were heard or
lost (`decide/expiry`), keys and producers whose window has ended (`Shard.forget_keys`), what is
swept from lanes and heaps, and the committed offset. `storage/loader` builds a shard from the rows
of a checkpoint.
"""

from __future__ import annotations

from jobline_server.engine import entries
from jobline_server.engine.apply import deletes, ends, leases, messages, pushes, queues
from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.state import ShardState

APPLY: ApplyTable = {
    **pushes.APPLY,
    **leases.APPLY,
    **ends.APPLY,
    **deletes.APPLY,
    **queues.APPLY,
    **messages.APPLY,
}


def apply(shard: ShardState, fact: entries.Fact, offset: int) -> None:
    """Gives a fact effect. `offset` is its place in the journal, 0 for one that is never
    written.
    """
    APPLY[type(fact)](shard, fact, offset)
