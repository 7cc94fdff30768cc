"""The rules of retention need no more of a store than the interface: they run over one in memory.
`tests/storage/test_sqlite_ended_store.py` runs the same tests over the files.
"""

from __future__ import annotations

from tests.storage.retention_contract import RetentionContract
from tests.storage.test_memory_ended_store import InMemory


class TestDueInMemory(InMemory, RetentionContract):
    pass
