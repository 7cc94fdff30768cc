"""The store in memory keeps the contracts of stores: what is shown with it holds for real ones."""

from __future__ import annotations

import pytest

from jobline_server.storage.store import Store
from tests.storage.checkpoint_contract import CheckpointContract
from tests.storage.memory_store import MemoryStore
from tests.storage.storage_contract import StoreContract


class OneStore:
    """The same store each time: it is its own disk."""

    @pytest.fixture(autouse=True)
    def _place(self) -> None:
        self._store = MemoryStore()

    def store(self) -> Store:
        return self._store


class TestMemoryStore(OneStore, StoreContract):
    pass


class TestMemoryCheckpoints(OneStore, CheckpointContract):
    pass
