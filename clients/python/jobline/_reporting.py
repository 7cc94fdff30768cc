"""What stands behind a `Context`: the worker that sends its reports and makes its calls, or the
recorder of a test.
"""

from __future__ import annotations

from typing import Any, Protocol

from jobline._flow_values import FlowNode
from jobline._job_log import LogLevel
from jobline._leased import LeasedJob
from jobline._values import Pushed


class Reporting(Protocol):
    """Sends the reports of a context."""

    def report(
        self,
        job: LeasedJob,
        *,
        progress: float | None = None,
        message: str | None = None,
        checkpoint: bytes | None = None,
        partial: bytes | None = None,
    ) -> bool:
        """Sends a report of a job; returns False if its lease is lost."""

    def log(self, job: LeasedJob, level: LogLevel, text: str) -> bool:
        """Sends a line for the log of a job; returns False if its lease is lost."""

    def finish_phase(self, job: LeasedJob, name: str, result: bytes) -> bool:
        """Sends the end of a phase of a job; returns False if its lease is lost."""


class Calls(Protocol):
    """Makes the calls of handlers beside the stream."""

    def children(self, job_id: int) -> list[FlowNode]:
        """Returns the children of a job."""

    def spawn(
        self, job: Any, values: tuple[Any, ...], own: dict[str, Any], how: dict[str, Any]
    ) -> Pushed:
        """Pushes a job, of a queue or a declared one, on the thread of the caller; `own` are the
        keywords that come from the job that spawns it, `how` those of the handler.
        """

    async def spawn_async(
        self, job: Any, values: tuple[Any, ...], own: dict[str, Any], how: dict[str, Any]
    ) -> Pushed:
        """Pushes a job on the worker's loop."""


class NoCalls:
    """Stands in where no worker is."""

    def children(self, job_id: int) -> list[FlowNode]:
        """Returns none."""
        return []

    def spawn(
        self, job: Any, values: tuple[Any, ...], own: dict[str, Any], how: dict[str, Any]
    ) -> Pushed:
        """Refuses: there is nobody to push it."""
        raise RuntimeError("this context is no worker's: make_context() has one that records")

    async def spawn_async(
        self, job: Any, values: tuple[Any, ...], own: dict[str, Any], how: dict[str, Any]
    ) -> Pushed:
        """Refuses as `spawn` does."""
        return self.spawn(job, values, own, how)
