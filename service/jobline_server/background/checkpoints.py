"""Periodic task: folds journals into tables when they have grown long or old."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.background.periodic import Counts
from jobline_server.engine.values import Now
from jobline_server.runtime.checkpoints import Checkpoints


@dataclass(frozen=True, slots=True)
class CheckpointTask:
    """Takes the checkpoints that are due."""

    checkpoints: Checkpoints
    name: str = "checkpoint"
    every_seconds: float = 1.0

    async def run_once(self, _now: Now) -> Counts:
        """Checkpoints every shard whose journal is due; returns how many."""
        return {"taken": await self.checkpoints.take_due()}
