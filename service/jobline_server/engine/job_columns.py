"""Jobs to push with options of their own, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from jobline_server.engine.ties import Ties
from jobline_server.engine.values import JobOptions


@dataclass(slots=True, eq=False)
class JobColumns:
    """Jobs to push with their own options, as columns, to save an object per job. All columns but
    the first two are empty if no job has any; "" is no key, and time 0 is now. `parent_indexes` are
    the earlier jobs of the same push that a job depends on. Without `has_rules` no job has options
    with rules; it may be set where none has.
    """

    payloads: list[bytes]
    options: list[JobOptions]
    job_keys: list[str] = field(default_factory=list)
    run_at_ms: list[int] = field(default_factory=list)
    ties: list[Ties] = field(default_factory=list)
    parent_indexes: list[tuple[int, ...]] = field(default_factory=list)
    has_rules: bool = True

    def __len__(self) -> int:
        return len(self.payloads)

    def picked(self, indexes: Sequence[int]) -> JobColumns:
        """Returns the jobs with these indexes."""
        return JobColumns(
            [self.payloads[index] for index in indexes],
            [self.options[index] for index in indexes],
            [self.job_keys[index] for index in indexes] if self.job_keys else [],
            [self.run_at_ms[index] for index in indexes] if self.run_at_ms else [],
            [self.ties[index] for index in indexes] if self.ties else [],
            [self.parent_indexes[index] for index in indexes] if self.parent_indexes else [],
            self.has_rules,
        )


NO_ROWS = JobColumns([], [], has_rules=False)
