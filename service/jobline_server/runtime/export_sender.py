"""Sends the files of the spool to the destination, the oldest first, and tries again for as long as
it fails. Nothing waits for it: the spool is bounded.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from jobline_server.history.destination import Destination, without_credentials
from jobline_server.history.spool import Spool
from jobline_server.runtime.daemon_thread import DaemonThread
from jobline_server.runtime.waiting import is_set_within
from jobline_server.telemetry.log import logger

LOG = logger("history")

# The pauses before the destination is tried again, doubled each time.
RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 0.5, 60.0
# How long a stop waits for what the destination does not have yet.
STOP_SECONDS = 2.0
# Of a failure that lasts, one line in so many is logged.
LINES_EVERY = 20


class Sender:
    """Sends files, one at a time, in a thread of its own: it may hang for as long as it likes."""

    def __init__(self, spool: Spool, destination: Destination) -> None:
        self._spool = spool
        self._destination = destination
        self._thread = DaemonThread("history-send")
        self._woken = asyncio.Event()
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.failures = 0
        self.sent = 0

    def start(self) -> None:
        """Starts to send, also what an earlier run has left."""
        self._task = asyncio.get_running_loop().create_task(self._keep_sending())

    def wake(self) -> None:
        """There is a new file."""
        self._woken.set()

    async def stop(self) -> None:
        """Sends what is left, unless that fails or takes long."""
        self._stopping.set()
        self._woken.set()
        if self._task is not None:
            done, _ = await asyncio.wait([self._task], timeout=STOP_SECONDS)
            if not done:
                self._task.cancel()
                await asyncio.wait([self._task])
        self._thread.stop()

    async def _keep_sending(self) -> None:
        in_a_row = 0
        while True:
            self._woken.clear()
            try:
                while await self._send_oldest():
                    in_a_row = 0
            except Exception as error:  # noqa: BLE001  # any error of any destination
                self.failures += 1
                in_a_row += 1
                report(LOG, "the destination of the history cannot be reached", error, in_a_row)
                if self._stopping.is_set():
                    return
                seconds = RETRY_SECONDS_MIN * 2.0 ** min(in_a_row - 1, 16)
                await is_set_within(self._stopping, min(seconds, RETRY_SECONDS_MAX))
                continue
            if self._stopping.is_set():
                return
            await self._woken.wait()

    async def _send_oldest(self) -> bool:
        """Sends the oldest file; returns whether there was one."""
        found = self._spool.oldest()
        if found is None:
            return False
        name, path = found
        try:
            await self._thread.run(partial(self._destination.send, name, path))
        except Exception:
            if path.exists():
                raise
            # It went for want of room meanwhile, or somebody removed it.
            if await self._thread.run(partial(self._spool.lose, name)):
                LOG.exception("a file of the history is gone, and lost", file=path)
            return True
        # Not in one with that: after a stop that did not wait, another process may have the spool.
        await self._thread.run(partial(self._spool.remove, name))
        self.sent += 1
        return True


def report(log: Any, what: str, error: Exception, failures_in_a_row: int) -> None:
    """Logs a failure that may last: not each time."""
    if failures_in_a_row % LINES_EVERY == 1:
        why = without_credentials(str(error))
        log.error(what, failures=failures_in_a_row, error=type(error).__name__, why=why)
