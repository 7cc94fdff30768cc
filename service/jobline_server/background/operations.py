"""Periodic task: deletes operations that are too old, or that too many are newer than."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.background.periodic import Counts
from jobline_server.engine import limits
from jobline_server.engine.values import Now
from jobline_server.runtime.calls.operations import Operations
from jobline_server.runtime.core import Core

# Operations of one delete: some milliseconds of the ended store's thread.
SLICE_OPERATIONS = 500


@dataclass(frozen=True, slots=True)
class DeleteOldOperations:
    """Keeps the newest operations of the last 90 days."""

    core: Core
    operations: Operations
    name: str = "old_operations"
    every_seconds: float = 60.0

    async def run_once(self, now: Now) -> Counts:
        """Deletes what is too old, in slices; returns how many."""
        before_ms = now.wall_ms - limits.OPERATIONS_KEPT_MS
        deleted = 0
        while not self.core.commits.disk_full:
            part = await self.operations.delete_old(
                before_ms, limits.OPERATIONS_KEPT_MAX, SLICE_OPERATIONS
            )
            deleted += part
            if part < SLICE_OPERATIONS:
                break
        return {"deleted": deleted}
