"""A runtime at work over stores in memory, which pass the contracts of all stores."""

from __future__ import annotations

from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.storage.stores import Stores
from tests.storage.memory_ended_store import MemoryEndedStore
from tests.storage.memory_store import MemoryStore
from tests.unit.runtime.conftest import opened_on


def new_stores() -> Stores:
    """Empty stores."""
    return Stores(MemoryStore(), MemoryEndedStore())


async def started(stores: Stores, clock: ManualClock) -> Runtime:
    """Opens a runtime with one shard, or opens it again, and lets its loop work."""
    runtime = await opened_on(stores, clock)
    runtime.start()
    return runtime
