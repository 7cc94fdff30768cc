"""Tenants in the order in which they are served; one heap for each kind of lanes.

A heap has an entry for each tenant that has open lanes of its kind, with a key that is not above
the tenant's own: keys rise while jobs run, without an entry being touched, and whoever takes an
entry out computes the key anew. A key that falls, because jobs ended, is noted at once.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from jobline_server.engine.tenant import Kind, Tenant

# Obsolete entries allowed, beyond one per tenant.
SPARE = 64


class TenantHeap:
    """The tenants with open lanes of one kind; `tenants` is their number."""

    __slots__ = ("_heap", "_keys", "_kind", "_number", "tenants")

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._heap: list[tuple[int, int, Tenant]] = []
        # The key of the entry that counts, by tenant.
        self._keys: dict[Tenant, int] = {}
        self._number = self.tenants = 0

    def __len__(self) -> int:
        """Returns the number of entries, including obsolete ones."""
        return len(self._heap)

    def note(self, tenant: Tenant, key_ns: int) -> None:
        """Adds an entry for a tenant, unless it has one with a lower key."""
        if self.is_noted(tenant, key_ns):
            return
        self._keys[tenant] = key_ns
        self._number += 1
        heappush(self._heap, (key_ns, self._number, tenant))
        if len(self._heap) > 2 * len(self._keys) + SPARE:
            self._heap = [entry for entry in self._heap if self._keys.get(entry[2]) == entry[0]]
            heapify(self._heap)

    def is_noted(self, tenant: Tenant, key_ns: int) -> bool:
        """Returns whether a tenant has an entry whose key is not above this one."""
        return self._keys.get(tenant, key_ns + 1) <= key_ns

    def clear(self) -> None:
        """Drops all entries."""
        self._heap.clear()
        self._keys.clear()

    def first_ns(self) -> int | None:
        """Returns the lowest key; None without entries. Drops entries that count no more."""
        heap, keys = self._heap, self._keys
        while heap:
            key_ns, _, tenant = heap[0]
            counts = keys.get(tenant) == key_ns
            if counts and self._kind in tenant.kinds:
                return key_ns
            heappop(heap)
            if counts:
                del keys[tenant]
        return None

    def take_first(self) -> Tenant:
        """Removes and returns the tenant with the key that `first_ns` returned."""
        _, _, tenant = heappop(self._heap)
        del self._keys[tenant]
        return tenant
