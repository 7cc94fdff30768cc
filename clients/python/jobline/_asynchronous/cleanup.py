"""Cleaning up after jobs: handlers for those that became stale or were deleted."""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TypeVar

from jobline._asynchronous.connection import called, closing, now, off_loop, sleep
from jobline._backoff import Pauses
from jobline._enums import EventKind
from jobline._position_file import PathGiven, PositionFile
from jobline._requests import Watching
from jobline._server_values import Event
from jobline.errors import InvalidArgument, OffsetGone
from jobline.v1.job_service_pb2 import WatchResponse

logger = logging.getLogger("jobline.cleanup")

Handler = TypeVar("Handler", bound=Callable[..., object])
Answers = Callable[[Watching], AsyncGenerator[WatchResponse, None]]

# Between calls of a handler that fails.
PAUSES = Pauses(first=0.1, longest=30.0)
# Between two writes of the position: what happened in that time may come again after a crash.
SAVE_SECONDS = 1.0

_STALE = (EventKind.STALE, EventKind.DEAD_EXPIRED)
_DELETED = (EventKind.DELETED, EventKind.DEAD_EVICTED)


class AsyncCleanup:
    """Calls handlers for jobs that became stale or were deleted, in the order in which it happened;
    `client.cleanup` makes one.

    Each event comes at least once, also over restarts of this program and of the server: the
    position in the file moves on when a handler has returned. A handler that fails is logged (as
    `jobline.cleanup`) and called again after a pause, until it returns; the events after it wait.
    The server keeps events for a while (docs/api.md): if those to resume from are gone, `run` calls
    the handler of `on_gap`, or raises OffsetGone if there is none. One program at a time may use a
    file.
    """

    def __init__(self, answers: Answers, position: PathGiven, queues: Sequence[str]) -> None:
        self._answers = answers
        self._file = PositionFile(position)
        self._queues = queues
        self._handlers: dict[EventKind, Callable[..., object]] = {}
        self._on_gap: Callable[..., object] | None = None
        self._reached = ""
        self._saved = ""
        self._saved_at = 0.0
        self._is_stopping = False

    def on_stale(self, handler: Handler) -> Handler:
        """Has this called with the event of a job that became stale: it is deleted later, and can
        still be retried. Returns the handler, so that it is a decorator, too.
        """
        self._handlers.update(dict.fromkeys(_STALE, handler))
        return handler

    def on_delete(self, handler: Handler) -> Handler:
        """Has this called with the event of a job that was deleted, by retention or by hand."""
        self._handlers.update(dict.fromkeys(_DELETED, handler))
        return handler

    def on_gap(self, handler: Handler) -> Handler:
        """Has this called, without arguments, where events may have been missed: at the first run,
        and when those to resume from are gone. It should compare what is there with the jobs that
        are there; events from before its call on come after it.
        """
        self._on_gap = handler
        return handler

    def stop(self) -> None:
        """Ends `run` after the event in hand, or with the next answer of the server, of which there
        is one every 15 s.
        """
        self._is_stopping = True

    async def run(self) -> None:
        """Handles events until `stop`. Raises InvalidArgument without handlers, OffsetGone as said
        above, what `watch` raises, and OSError if the file cannot be read or written.
        """
        if not self._handlers:
            raise InvalidArgument("there is no handler: name one by on_stale or on_delete")
        self._is_stopping = False
        self._reached = self._saved = self._file.load()
        try:
            while not self._is_stopping:
                try:
                    await self._follow(is_gap=not self._reached)
                except OffsetGone:
                    if self._on_gap is None:
                        raise
                    logger.warning("the events to resume from are gone: there is a gap")
                    self._reached = ""
        finally:
            if self._reached != self._saved:
                self._file.save(self._reached)

    async def _follow(self, *, is_gap: bool) -> None:
        """Handles events from where it is, until `stop`."""
        watching = Watching(
            queues=self._queues, job_id=None, kinds=self._handlers, resume_token=self._reached
        )
        async with closing(self._answers(watching)) as answers:
            async for answer in answers:
                # The first answer has no events: the watch has begun, and misses nothing.
                if is_gap and self._on_gap is not None and not await self._handle(self._on_gap):
                    return
                is_gap = False
                for event, token in watching.take(answer):
                    if self._is_stopping or not await self._handle_event(event):
                        return
                    await self._reach(token)
                await self._reach(answer.resume_token)
                if self._is_stopping:
                    return

    async def _handle_event(self, event: Event) -> bool:
        handler = self._handlers.get(event.kind)
        return handler is None or await self._handle(handler, event)

    async def _handle(self, handler: Callable[..., object], *event: Event) -> bool:
        """Calls a handler until it returns; returns whether it did before `stop`."""
        tries = 0
        while True:
            try:
                await called(handler, *event)
            except Exception:  # whatever it raises: the event is not handled
                tries += 1
                pause = PAUSES.after(tries, random.random)
                logger.exception(
                    "a handler failed at %s, try %d; again in %.1f s", _about(event), tries, pause
                )
                if self._is_stopping:
                    return False
                await sleep(pause)
            else:
                return True

    async def _reach(self, token: str) -> None:
        """Remembers a position, and writes it now and then."""
        self._reached = token
        if not self._saved or now() >= self._saved_at + SAVE_SECONDS:
            await off_loop(self._file.save, token)
            self._saved, self._saved_at = token, now()


def _about(event: tuple[Event, ...]) -> str:
    return f"{event[0].kind.name} of job {event[0].job_id}" if event else "a gap"
