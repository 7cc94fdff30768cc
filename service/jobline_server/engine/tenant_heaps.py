"""The heaps of a fair queue, by kind of lanes: where consumers find the tenants that they may have
jobs of.
"""

from __future__ import annotations

from collections.abc import Iterable

from jobline_server.engine.lane import Lane
from jobline_server.engine.ranks import Names
from jobline_server.engine.tenant import Kind, Tenant
from jobline_server.engine.tenant_heap import TenantHeap
from jobline_server.engine.versions import is_new_enough


class TenantHeaps:
    """A heap for each kind of which any tenant has open lanes."""

    __slots__ = ("_by_name",)

    def __init__(self) -> None:
        # By the name of their kind, then by kind.
        self._by_name: dict[str, dict[Kind, TenantHeap]] = {}

    def join(self, tenant: Tenant, kind: Kind) -> None:
        """Counts an open lane of a tenant, and notes its key."""
        heaps = self._by_name.setdefault(kind[0], {})
        heap = heaps.get(kind)
        if heap is None:
            heap = heaps[kind] = TenantHeap(kind)
        lanes = tenant.kinds.get(kind, 0)
        # All tenants share the value that says which kind it is.
        tenant.kinds[heap.kind] = lanes + 1
        heap.tenants += not lanes
        heap.note(tenant, tenant.key_ns())

    def leave(self, tenant: Tenant, kind: Kind) -> None:
        """Counts a lane of a tenant out."""
        tenant.kinds[kind] -= 1
        if tenant.kinds[kind]:
            return
        del tenant.kinds[kind]
        heaps = self._by_name[kind[0]]
        heaps[kind].tenants -= 1
        if not heaps[kind].tenants:
            del heaps[kind]
        if not heaps:
            del self._by_name[kind[0]]

    def note(self, tenant: Tenant) -> None:
        """Notes the key of a tenant for all kinds of its lanes."""
        key_ns = tenant.key_ns()
        for kind in tenant.kinds:
            self._by_name[kind[0]][kind].note(tenant, key_ns)

    def is_noted(self, tenant: Tenant) -> bool:
        """Returns whether consumers find a tenant as early as its turn comes."""
        key_ns = tenant.key_ns()
        heaps = [self._by_name[kind[0]][kind] for kind in tenant.kinds]
        return all(heap.is_noted(tenant, key_ns) for heap in heaps)

    def of(self, names: Names, size: int | None, version: str | None) -> list[TenantHeap]:
        """Returns the heaps of the kinds that a consumer of `names` (None: all) may have, of sizes
        up to `size` (None: all), with a worker of this version (None: any).
        """
        found: Iterable[dict[Kind, TenantHeap]] = self._by_name.values()
        if names is not None and len(names) < len(self._by_name):
            # Sorted, so that nothing depends on the order of a set.
            found = [self._by_name[name] for name in sorted(names) if name in self._by_name]
        elif names is not None:
            found = [heaps for name, heaps in self._by_name.items() if name in names]
        return [
            heap
            for heaps in found
            for kind, heap in heaps.items()
            if (size is None or kind[1] <= size) and _is_for(kind, version)
        ]

    def clear(self) -> None:
        """Drops all entries; call `note` for the tenants that have open lanes."""
        for heaps in self._by_name.values():
            for heap in heaps.values():
                heap.clear()


def kind_of(lane: Lane) -> Kind:
    """Returns the kind of a lane."""
    return lane.name, lane.size, lane.needs


def _is_for(kind: Kind, version: str | None) -> bool:
    """Returns whether a worker of this version (None: any) may have jobs of a kind."""
    needs = kind[2]
    if version is None or needs is None:
        return True
    return is_new_enough(version, needs.min_worker_version)
