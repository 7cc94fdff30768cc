"""The log of a job: the last lines that its workers wrote.

It stands beside the job, live or ended. Lines of live jobs are in memory and count as payload bytes
of the server, so that a million jobs cannot fill it with logs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from jobline_server.engine import limits
from jobline_server.engine.values import LogLevel


class LogLine(NamedTuple):
    """One line; `written_ms` is wall time by the clock of the worker."""

    written_ms: int
    level: LogLevel
    text: str
    attempt: int


class NewLine(NamedTuple):
    """A line for the log of a job; with `written_ms` 0 it is written now."""

    text: str
    level: LogLevel = LogLevel.INFO
    written_ms: int = 0


@dataclass(slots=True)
class JobLog:
    """Lines, oldest first; `dropped` counts those before them. `bytes` is their size: of the texts,
    and of what a line takes besides.
    """

    lines: deque[LogLine] = field(default_factory=deque)
    dropped: int = 0
    bytes: int = 0

    def add(self, lines: Iterable[LogLine], bytes_max: int = limits.LOG_BYTES_MAX) -> None:
        """Appends lines, and drops the oldest ones until the log is within its limits."""
        kept = self.lines
        for line in lines:
            kept.append(line)
            self.bytes += size_of(line)
        while kept and (self.bytes > bytes_max or len(kept) > limits.LOG_LINES_MAX):
            self.bytes -= size_of(kept.popleft())
            self.dropped += 1

    def copy(self) -> JobLog:
        """Returns a log with the same lines, to be continued."""
        return JobLog(self.lines.copy(), self.dropped, self.bytes)


def size_of(line: LogLine) -> int:
    """Returns how many bytes a line counts as."""
    return len(line.text.encode()) + limits.LOG_LINE_EXTRA_BYTES
