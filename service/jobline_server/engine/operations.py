"""Operations: what operators did, with all that is needed to undo it.

An operation is recorded by a fact that stands beside those of its change in the same commit. It is
no state of a shard: as an ended job it goes to the ended store, and memory keeps nothing of it. Its
`change` has the values before and after, so that an undo sees whether something changed since.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from jobline_server.engine import limits
from jobline_server.engine.allowance import TimeLimit
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.engine.limiters import LimiterSettings
from jobline_server.engine.values import QueueSettings


class OperationState(IntEnum):
    """How far an operation is. One that is STARTED goes on, or the server stopped before it was
    over.
    """

    STARTED = 1
    DONE = 2
    INTERRUPTED = 3


@dataclass(frozen=True, slots=True)
class Pause:
    """Whether a queue, group or schedule is paused, by whom, and why."""

    paused: bool = False
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PauseChange:
    """A pause of a queue, group or schedule, or its end."""

    before: Pause
    after: Pause


@dataclass(frozen=True, slots=True)
class TimeLimitChange:
    """A time until which a queue, group or limiter lets nothing out; `None` is no such limit."""

    before: TimeLimit | None
    after: TimeLimit | None


@dataclass(frozen=True, slots=True)
class QueueChange:
    """Settings of a queue."""

    before: QueueSettings
    after: QueueSettings


@dataclass(frozen=True, slots=True)
class GroupChange:
    """Settings of a group."""

    before: GroupSettings
    after: GroupSettings


@dataclass(frozen=True, slots=True)
class LimitsChange:
    """A limiter; `None` where there was none, or is none any more."""

    before: LimiterSettings | None
    after: LimiterSettings | None


@dataclass(frozen=True, slots=True)
class CancelledJobs:
    """Jobs that waited and were cancelled, as runs of neighbours: (first id, count, when they were
    to become READY; 0: they were). With `cut` there were more runs than are kept.
    """

    runs: tuple[tuple[int, int, int], ...] = ()
    cut: bool = False


Change = PauseChange | TimeLimitChange | QueueChange | GroupChange | LimitsChange | CancelledJobs


class CancelledRuns:
    """Collects the jobs of a cancel as runs, in the order in which they come."""

    __slots__ = ("_cut", "_end_id", "_first_id", "_run_at_ms", "_runs")

    def __init__(self) -> None:
        self._runs: list[tuple[int, int, int]] = []
        # The last run, which goes on.
        self._first_id = self._end_id = self._run_at_ms = -1
        self._cut = False

    def add(self, job_id: int, run_at_ms: int) -> None:
        """Adds a job with the time at which it was to become READY."""
        if job_id == self._end_id and run_at_ms == self._run_at_ms:
            self._end_id += 1
            return
        self._end_run()
        self._first_id, self._end_id, self._run_at_ms = job_id, job_id + 1, run_at_ms

    def _end_run(self) -> None:
        if self._first_id < 0:
            return
        if len(self._runs) >= limits.OPERATION_RUNS_MAX:
            self._cut = True
        else:
            count = self._end_id - self._first_id
            self._runs.append((self._first_id, count, self._run_at_ms))

    def jobs(self) -> CancelledJobs:
        """Returns what was collected; nothing is added after that."""
        self._end_run()
        self._first_id = -1
        return CancelledJobs(tuple(self._runs), self._cut)


@dataclass(frozen=True, slots=True)
class Operation:
    """What an operator did. `verb` is the method that was called, `request` what it was asked, as
    JSON; `undoes` is the id of the operation that this one undid, or "".
    """

    id: str
    verb: str
    principal: str
    began_ms: int
    state: OperationState = OperationState.DONE
    reason: str = ""
    queue: str = ""
    group: str = ""
    limiter: str = ""
    request: str = ""
    ended_ms: int = 0
    count: int = 0
    requested: int = 0
    undoes: str = ""
    change: Change | None = None
    schedule: str = ""
    batch_id: int = 0


NEWEST = 1 << 62
"""Above the number of every operation, and the time of every one."""


@dataclass(frozen=True, slots=True)
class OperationQuery:
    """Selects operations for which every condition that is set holds, with numbers below `before`,
    the newest first. `after_ms` is included, `before_ms` is not.
    """

    id: str = ""
    principal: str = ""
    verb: str = ""
    queue: str = ""
    after_ms: int = 0
    before_ms: int = NEWEST
    before: int = NEWEST
    limit: int = 100
