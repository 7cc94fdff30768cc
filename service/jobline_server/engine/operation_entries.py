"""Facts of operations. `entries` has the list of all facts."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine.operations import Operation


@dataclass(slots=True)
class OperationRecorded:
    """An operator did something. One that goes in slices is recorded as it begins and as it
    ends.
    """

    at_ms: int
    operation: Operation
