"""What `jobline work` prints about each job: one line when it has ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from jobline._context import Context
from jobline._outcomes import Outcome, Retry
from jobline._printable import printable
from jobline._values import JobError, message_of
from jobline._worker.middleware import Middleware
from jobline.cli.durations import show_span
from jobline.cli.output import Output, fall_silent


class WorkReport(Middleware):
    """Prints how each job went. It sees what handlers do, not what the server makes of it."""

    def __init__(self, out: Output) -> None:
        self._out = out

    async def around(
        self, contexts: Sequence[Context], call_next: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Around an async handler."""
        began = time.monotonic()
        try:
            value = await call_next()
        except BaseException as error:
            self._say(contexts, began, error)
            raise
        self._say(contexts, began, value)
        return value

    def around_plain(self, contexts: Sequence[Context], call_next: Callable[[], Any]) -> Any:
        """Around a plain handler."""
        began = time.monotonic()
        try:
            value = call_next()
        except BaseException as error:
            self._say(contexts, began, error)
            raise
        self._say(contexts, began, value)
        return value

    def _say(self, contexts: Sequence[Context], began: float, ended: object) -> None:
        seconds = time.monotonic() - began
        outcome, why = outcome_of(ended)
        try:
            for context in contexts:
                self._line(context, outcome, why, seconds)
        except OSError:  # a closed pipe, a full disk: no reason to fail a job that is done
            fall_silent()

    def _line(self, context: Context, outcome: str, why: str, seconds: float) -> None:
        if self._out.as_json:
            document = {"id": context.id, "delivery": context.delivery, "attempt": context.attempt}
            self._out.line(
                {**document, "outcome": outcome, "error": why, "seconds": round(seconds, 6)}
            )
            return
        line = f"{context.id}  {outcome}  {show_span(seconds)}  {context.name}"
        self._out.console.print(printable(f"{line}  {why}".rstrip()), markup=False)


def outcome_of(ended: object) -> tuple[str, str]:
    """How it went, and why, if it went otherwise than well."""
    if isinstance(ended, Retry) and isinstance(ended.error, JobError):
        return "failed", f"{ended.error.type}: {ended.error.message}"
    if isinstance(ended, Outcome):
        return type(ended).__name__.lower(), message_of(ended)
    if isinstance(ended, asyncio.CancelledError):
        return "interrupted", ""
    if isinstance(ended, BaseException):
        return "failed", f"{type(ended).__name__}: {message_of(ended)}"
    return "done", ""
