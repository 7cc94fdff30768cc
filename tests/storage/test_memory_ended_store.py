"""The store of ended jobs in memory is a true one: it runs the same contracts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from jobline_server.storage.ended_store import EndedJobStore
from tests.storage.ended_store_contract import EndedStoreContract, Opening
from tests.storage.memory_ended_store import MemoryEndedStore
from tests.storage.scan_contract import ScanContract


@asynccontextmanager
async def opened() -> AsyncIterator[EndedJobStore]:
    yield MemoryEndedStore()


class InMemory:
    def opening(self) -> Opening:
        return opened()


class TestMemoryEndedStore(InMemory, EndedStoreContract):
    pass


class TestMemoryScans(InMemory, ScanContract):
    pass
