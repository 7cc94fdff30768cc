"""Tenants in the order in which they are served; one heap for each kind of lanes.

A heap has an entry for each tenant that has open lanes of its kind, with a key that is not above
the tenant's own: keys rise while jobs run, without an entry being touched, and whoever takes an
entry out computes the key anew. A key that falls, because jobs ended, is noted at once. Entries
that count no more are swept a few at a time, as in `Delayed`: there may be a million tenants.
"""

from __future__ import annotations

from heapq import heappop, heappush

from jobline_server.engine.name_table import part_of
from jobline_server.engine.tenant import Kind, Tenant

# Obsolete entries allowed, beyond one per tenant.
SPARE = 64
# Entries examined per entry that is added while there are more: a sweep ends before its end moves.
SWEPT_EACH = 3

_Entry = tuple[int, int, Tenant]
"""A key, a unique number, and the tenant."""


class TenantHeap:
    """The tenants with open lanes of one kind; `tenants` is their number."""

    __slots__ = ("_heap", "_keys", "_noted", "_number", "_unswept", "kind", "tenants")

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self._heap: list[_Entry] = []
        self._unswept: list[_Entry] = []
        # The key of the entry that counts, by tenant, in parts: a full dictionary is copied.
        self._keys: dict[int, dict[Tenant, int]] = {}
        self._noted = self._number = self.tenants = 0

    def __len__(self) -> int:
        """Returns the number of entries, including obsolete ones."""
        return len(self._heap) + len(self._unswept)

    def note(self, tenant: Tenant, key_ns: int) -> None:
        """Adds an entry for a tenant, unless it has one with a lower key."""
        keys = self._keys.setdefault(part_of(tenant.name), {})
        noted_ns = keys.get(tenant)
        if noted_ns is not None and noted_ns <= key_ns:
            return
        self._noted += noted_ns is None
        keys[tenant] = key_ns
        self._number += 1
        heappush(self._heap, (key_ns, self._number, tenant))
        if len(self) > 2 * self._noted + SPARE:
            self._sweep()

    def is_noted(self, tenant: Tenant, key_ns: int) -> bool:
        """Returns whether a tenant has an entry whose key is not above this one."""
        return self._keys.get(part_of(tenant.name), {}).get(tenant, key_ns + 1) <= key_ns

    def clear(self) -> None:
        """Drops all entries."""
        self._heap, self._unswept, self._keys, self._noted = [], [], {}, 0

    def first_ns(self) -> int | None:
        """Returns the lowest key; None without entries. Drops entries that count no more."""
        while heap := self._first():
            key_ns, _, tenant = heap[0]
            counts = self._counts(heap[0])
            if counts and self.kind in tenant.kinds:
                return key_ns
            heappop(heap)
            if counts:
                self._forget(tenant)
        return None

    def take_first(self) -> Tenant:
        """Removes and returns the tenant with the key that `first_ns` returned."""
        _, _, tenant = heappop(self._first())
        self._forget(tenant)
        return tenant

    def _first(self) -> list[_Entry]:
        """Returns the heap that the next entry is on."""
        heap, unswept = self._heap, self._unswept
        if heap and unswept:
            return heap if heap[0] < unswept[0] else unswept
        return heap or unswept

    def _counts(self, entry: _Entry) -> bool:
        key_ns, _, tenant = entry
        return self._keys.get(part_of(tenant.name), {}).get(tenant) == key_ns

    def _forget(self, tenant: Tenant) -> None:
        del self._keys[part_of(tenant.name)][tenant]
        self._noted -= 1

    def _sweep(self) -> None:
        for _ in range(SWEPT_EACH):
            if not self._unswept:
                self._unswept, self._heap = self._heap, self._unswept
            entry = self._unswept.pop()
            if self._counts(entry):
                heappush(self._heap, entry)
