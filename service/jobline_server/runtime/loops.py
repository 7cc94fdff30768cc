"""Runs the server's own work, and keeps it running when it raises.

A failure is logged with its stack, counted, and retried after a growing pause. After five failures
in a row a CRITICAL line is logged. If the work is *vital*, the server is not healthy (`/healthz`)
until it succeeds again.

Vital is what callers and workers wait for: timers, hand-outs, ended jobs. A server that fails there
answers wrongly or not at all, and a start reads everything from the disk again, which may mend it.
Statistics are not vital, and no periodic task is (`background.periodic`): nobody waits for them,
and whoever restarts the server, or takes it out of service, for their sake stops a queue that
works.

`keep` runs a loop. Work that others call, such as a listener of commits, is guarded by its caller,
which reports to its `Record`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any

from jobline_server.runtime.waiting import is_set_within
from jobline_server.telemetry.log import logger

LOG = logger("runtime")
# So many failures in a row are no accident.
FAILURES_CRITICAL = 5
# A loop is tried again after this long, and after twice as long each time; but timers that stand
# still for longer than the longest pause would be noticed by those who wait for them.
RETRY_SECONDS_MIN = 0.1
RETRY_SECONDS_MAX = 5.0
# What goes on failing, at each commit perhaps, is logged this often at most, and counted each time.
LINES_MAX = FAILURES_CRITICAL
LINES_SECONDS = 60.0


def _nothing() -> None:
    """Stands in where nobody is notified."""


class Record:
    """The failures of one piece of work. As a context it guards a step: an exception is counted and
    goes no further.
    """

    __slots__ = (
        "_changed",
        "_lines",
        "_lines_from",
        "failures",
        "failures_in_a_row",
        "is_vital",
        "name",
    )

    def __init__(
        self, name: str, changed: Callable[[], None] = _nothing, *, is_vital: bool = True
    ) -> None:
        self.name = name
        self.is_vital = is_vital
        self._changed = changed
        self.failures = 0
        self.failures_in_a_row = 0
        self._lines = 0
        self._lines_from = 0.0

    def __enter__(self) -> None:
        """Begins a step."""

    def __exit__(
        self, _type: object, error: BaseException | None, _traceback: TracebackType | None
    ) -> bool:
        """Counts a failure, or ends a row of them."""
        if error is None:
            self.worked()
        elif isinstance(error, Exception):
            self.failed(error)
            return True
        return False

    @property
    def is_failing(self) -> bool:
        """Returns whether it failed often enough in a row to be critical."""
        return self.failures_in_a_row >= FAILURES_CRITICAL

    def failed(self, error: BaseException, *, is_known: bool = False) -> None:
        """Counts a failure, and logs it with its stack. `is_known`: it was logged, and is no fault
        of the server; only the fifth in a row has a line here, with its reason.
        """
        self.failures += 1
        self.failures_in_a_row += 1
        is_fifth = self.failures_in_a_row == FAILURES_CRITICAL
        if is_fifth or (not is_known and self._may_log(time.monotonic())):
            log = LOG.critical if is_fifth else LOG.error
            log(
                "work of the server failed",
                work=self.name,
                failures=self.failures,
                failures_in_a_row=self.failures_in_a_row,
                **({"why": str(error)} if is_known else {"exc_info": error}),
            )
        if is_fifth:
            self._changed()

    def worked(self) -> None:
        """Ends a row of failures."""
        if not self.failures_in_a_row:
            return
        was_failing, self.failures_in_a_row = self.is_failing, 0
        if was_failing:
            LOG.info("work of the server goes on", work=self.name, failures=self.failures)
            self._changed()

    def _may_log(self, now_seconds: float) -> bool:
        if now_seconds >= self._lines_from + LINES_SECONDS:
            self._lines, self._lines_from = 0, now_seconds
        self._lines += 1
        return self._lines <= LINES_MAX


class Loops:
    """All pieces of work, by name."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.changed: Callable[[], None] = lambda: None
        """Called when something does not work any more, or works again."""
        self._stopping = asyncio.Event()

    def record(self, name: str, *, is_vital: bool = True) -> Record:
        """Returns the record of a piece of work, the same one each time. Whether it is vital is
        said the first time.
        """
        if name not in self.records:
            self.records[name] = Record(name, self._has_changed, is_vital=is_vital)
        return self.records[name]

    def failing(self) -> list[str]:
        """Returns the names of the vital work that fails."""
        records = self.records.values()
        return [record.name for record in records if record.is_vital and record.is_failing]

    async def keep(self, name: str, step: Callable[[], Awaitable[bool]]) -> None:
        """Runs a step again and again until one returns False, whatever it raises."""
        record = self.record(name)
        while True:
            try:
                goes_on = await step()
            except Exception as error:  # noqa: BLE001  # the next one may do better
                record.failed(error)
                pause = pause_after(record.failures_in_a_row)
                if await is_set_within(self._stopping, pause):
                    return
                continue
            record.worked()
            if not goes_on:
                return

    def stop(self) -> None:
        """Ends retries."""
        self._stopping.set()

    def _has_changed(self) -> None:
        self.changed()


def pause_after(failures: int) -> float:
    """Returns how long to wait after so many failures in a row, in seconds."""
    return min(RETRY_SECONDS_MIN * 2.0 ** min(failures - 1, 16), RETRY_SECONDS_MAX)


def log_stray_exceptions(record: Record) -> None:
    """Counts and logs exceptions of tasks and callbacks that no caller handles. They are unrelated,
    so many of them are no failures in a row.
    """

    def handle(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception") or RuntimeError(context["message"])
        record.failed(error)
        record.worked()

    asyncio.get_running_loop().set_exception_handler(handle)
