"""Lines of the log, written by a thread of their own: who does not read them stops nobody.

A pipe that nobody reads is full one day, and whoever writes to it then waits until somebody does.
In the loop that would be leases, health and the end by SIGTERM, because what collects the log
stands still. So a thread waits, some megabytes of lines wait with it, and the newest are left out
and counted.
"""

from __future__ import annotations

import logging
import os
import select
import threading
from collections import deque
from contextlib import suppress

WAITING_BYTES_MAX = 8 << 20
# How long the end of the process waits for somebody to read.
FLUSH_SECONDS = 1.0


class BackgroundLines(logging.Handler):
    """Writes to a descriptor. `flush` waits for what was logged, for a moment."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._left_out = 0
        self._change = threading.Condition()
        threading.Thread(target=self._write_all, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Has a line written, unless too many wait."""
        try:
            line = self._encoded(record)
        except Exception:  # noqa: BLE001  # as all handlers: a line that cannot be made is reported
            self.handleError(record)
            return
        with self._change:
            if self._bytes + len(line) > WAITING_BYTES_MAX:
                self._left_out += 1
                return
            if self._left_out:
                self._add(self._encoded(_note_of(self._left_out)))
                self._left_out = 0
            self._add(line)
            self._change.notify_all()

    def _encoded(self, record: logging.LogRecord) -> bytes:
        return f"{self.format(record)}\n".encode(errors="backslashreplace")

    def _add(self, line: bytes) -> None:
        self._lines.append(line)
        self._bytes += len(line)

    def flush(self) -> None:
        """Waits until all is written, a second at most."""
        with self._change:
            self._change.wait_for(lambda: not self._bytes, FLUSH_SECONDS)

    def _write_all(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._lines)
                line = self._lines.popleft()
            with suppress(OSError):  # there is no log any more, and nowhere to say so
                self._write(line)
            with self._change:
                self._bytes -= len(line)
                self._change.notify_all()

    def _write(self, line: bytes) -> None:
        left = memoryview(line)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:  # whoever gave us the descriptor does not wait either
                select.select([], [self._descriptor], [])


def _note_of(left_out: int) -> logging.LogRecord:
    message = f"{left_out} lines of the log were left out: nobody read it"
    return logging.LogRecord("jobline.log", logging.WARNING, "", 0, message, None, None)
