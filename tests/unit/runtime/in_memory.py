"""A runtime at work over stores in memory, which pass the contracts of all stores."""

from __future__ import annotations

from itertools import count

from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.opening import open_runtime
from jobline_server.runtime.runtime import Runtime, RuntimeSettings
from jobline_server.storage.stores import Stores
from tests.storage.memory_ended_store import MemoryEndedStore
from tests.storage.memory_store import MemoryStore
from tests.unit.runtime.conftest import nothing_is_damaged


def new_stores() -> Stores:
    """Empty stores."""
    return Stores(MemoryStore(), MemoryEndedStore())


async def started(stores: Stores, clock: ManualClock) -> Runtime:
    """Opens a runtime with one shard, or opens it again, and lets its loop work."""
    names = count(1)
    runtime = await open_runtime(
        stores,
        shards=1,
        clock=clock,
        settings=RuntimeSettings(),
        new_name=lambda: f"name-{next(names)}",
        report=nothing_is_damaged,
    )
    runtime.start()
    return runtime
