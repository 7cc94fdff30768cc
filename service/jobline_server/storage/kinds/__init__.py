"""Durable kinds: what a checkpoint keeps of a shard, one file and one row per kind.

A file holds both directions of its kind, bytes included: how an item is encoded and decoded, how
the items of a page are loaded, and the row that `KINDS` lists. `checkpoint` and `loader` walk this
table and name no kind; `table` describes a row, `by_id` does what most kinds need. A kind may note
items of one that comes after it, as jobs note their bundles and lots their payloads.

To change what is written: change `store.proto` (it says how), then the two functions of the kind.
"""

from jobline_server.storage.kinds.awaited import AWAITED
from jobline_server.storage.kinds.batches import BATCHES
from jobline_server.storage.kinds.bundles import BUNDLES
from jobline_server.storage.kinds.counters import COUNTERS
from jobline_server.storage.kinds.groups import GROUPS
from jobline_server.storage.kinds.jobs import JOBS
from jobline_server.storage.kinds.keys import KEYS
from jobline_server.storage.kinds.limiters import LIMITERS
from jobline_server.storage.kinds.lot_payloads import LOT_PAYLOADS
from jobline_server.storage.kinds.lots import LOTS
from jobline_server.storage.kinds.messages import INBOXES, MESSAGES
from jobline_server.storage.kinds.producers import PRODUCERS
from jobline_server.storage.kinds.queues import QUEUES
from jobline_server.storage.kinds.schedules import SCHEDULES
from jobline_server.storage.kinds.table import DurableKind
from jobline_server.storage.kinds.throttles import THROTTLES
from jobline_server.storage.kinds.webhooks import WEBHOOK_DELIVERIES, WEBHOOKS

KINDS: tuple[DurableKind, ...] = (
    COUNTERS,
    QUEUES,
    LOTS,
    JOBS,
    KEYS,
    PRODUCERS,
    MESSAGES,
    INBOXES,
    BUNDLES,
    LOT_PAYLOADS,
    THROTTLES,
    AWAITED,
    GROUPS,
    LIMITERS,
    SCHEDULES,
    BATCHES,
    WEBHOOKS,
    WEBHOOK_DELIVERIES,
)

__all__ = ["KINDS"]
