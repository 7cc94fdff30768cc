"""Lines of job logs to send. Pure.

Lines go out in batches with the next frame. Nothing confirms them: those that were sent on a
connection that broke may be lost. Of a job that writes faster than lines can be sent, the oldest
are dropped, as the server would drop them.
"""

from __future__ import annotations

from collections import deque

from jobline._job_log import LogLevel
from jobline.v1 import job_pb2
from jobline.v1 import job_service_pb2 as pb

# Limits of the server, for one job and for one frame.
LINES_MAX = 1_000
LINES_BYTES_MAX = 1 << 20
LINE_BYTES_MAX = 16 << 10
FRAME_LINES_MAX = 5_000
FRAME_BYTES_MAX = 2 << 20


class _Waiting:
    """The lines of one lease, with their size in bytes."""

    __slots__ = ("lines", "size")

    def __init__(self) -> None:
        self.lines: deque[tuple[int, LogLevel, bytes]] = deque()
        self.size = 0

    def add(self, at_ms: int, level: LogLevel, text: bytes) -> None:
        self.lines.append((at_ms, level, text))
        self.size += len(text)
        while self.size > LINES_BYTES_MAX or len(self.lines) > LINES_MAX:
            self.size -= len(self.lines.popleft()[2])


class LogLines:
    """Holds the lines of one session that were not sent, by lease."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[int, int], _Waiting] = {}

    def __bool__(self) -> bool:
        """Returns whether a line waits to be sent."""
        return bool(self._waiting)

    def add(self, id_: int, delivery: int, at_ms: int, level: LogLevel, text: str) -> None:
        """Adds a line; cut where it is too long."""
        waiting = self._waiting.get((id_, delivery))
        if waiting is None:
            waiting = self._waiting[id_, delivery] = _Waiting()
        waiting.add(at_ms, level, text.encode("utf-8", "replace")[:LINE_BYTES_MAX])

    def take(self) -> list[pb.StreamLog]:
        """Removes and returns as many lines as one frame may carry."""
        logs: list[pb.StreamLog] = []
        count = size = 0
        while self._waiting and size < FRAME_BYTES_MAX:
            (id_, delivery), waiting = next(iter(self._waiting.items()))
            count += len(waiting.lines)
            if count > FRAME_LINES_MAX:
                break
            size += waiting.size
            del self._waiting[id_, delivery]
            log = pb.StreamLog(id=id_, delivery=delivery)
            for at_ms, level, text in waiting.lines:
                log.lines.append(text.decode("utf-8", "ignore"))
                log.levels.append(job_pb2.LogLevel.ValueType(level))
                log.at_ms.append(at_ms)
            logs.append(log)
        return logs

    def forget(self, id_: int, delivery: int) -> None:
        """Drops the lines of a lease that is lost."""
        self._waiting.pop((id_, delivery), None)

    def clear(self) -> None:
        """Drops all lines, because the server refused one."""
        self._waiting.clear()
