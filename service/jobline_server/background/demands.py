"""Periodic task: keeps samples of what queues with an objective have to do."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.background.periodic import Counts
from jobline_server.engine.limits import SECOND_MS
from jobline_server.engine.values import Now
from jobline_server.runtime.calls.demands import SAMPLE_MS, Demands


@dataclass(slots=True)
class SampleDemands:
    """Samples all queues with an objective."""

    demands: Demands
    name: str = "demands"
    every_seconds: float = SAMPLE_MS / SECOND_MS

    async def run_once(self, _now: Now) -> Counts:
        """Keeps a sample of each; returns of how many."""
        return {"queues": await self.demands.sample()}
