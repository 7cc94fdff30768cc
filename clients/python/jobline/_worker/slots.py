"""Slots: the places where handlers run, one at a time, and the replacement of stuck handlers.

A handler cannot be killed, neither a thread nor a task that swallows its cancellation. So a
successor takes its slot, it counts as stuck until it ends by itself, and what it returns then is
dropped. The two kinds of `Runners` decide how handlers run.
"""

from __future__ import annotations

import logging
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable, Iterator
from datetime import datetime
from types import FrameType
from typing import Any

from jobline._context import Context
from jobline._worker.execution import Execution, Work

logger = logging.getLogger("jobline.worker")


class Slot:
    """A place for one handler at a time: a task of the loop, or a thread."""

    __slots__ = ("contexts", "coroutine", "is_replaced", "name", "thread_id")

    def __init__(self, name: str) -> None:
        self.name = name
        self.thread_id = 0
        self.contexts: tuple[Context, ...] = ()  # of the jobs of the handler that runs here
        self.coroutine: Coroutine[Any, Any, Any] | None = None  # what runs them, if it is async
        self.is_replaced = False

    @property
    def is_ended(self) -> bool:
        """Whether a handler runs here and all of its jobs were cancelled."""
        contexts = self.contexts
        return bool(contexts) and all(context.cancelled for context in contexts)

    def stack(self) -> str:
        """Returns the stack of the handler. Safe on any thread."""
        coroutine = self.coroutine
        if coroutine is not None and not getattr(coroutine, "cr_running", True):
            frames: Iterable[FrameType] = _frames_of(coroutine)
        else:
            current = sys._current_frames()  # noqa: SLF001  # the documented way to another thread
            frames = _frames_below(current.get(self.thread_id))
        summary = traceback.StackSummary.extract((frame, frame.f_lineno) for frame in frames)
        return f"{self.name}:\n{''.join(summary.format())}"


def _frames_of(awaited: Any) -> Iterator[FrameType]:
    """Yields the frames of a coroutine that waits, outermost first."""
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is not None:
            yield frame
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)


def _frames_below(frame: FrameType | None) -> list[FrameType]:
    """Returns the frames of a thread, outermost first."""
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames[::-1]


class Runners(ABC):
    """All slots of one kind. `stuck` has those whose handlers run on after their grace period;
    `abandoned` counts those that ever did.
    """

    def __init__(self, execution: Execution, size: int) -> None:
        self._execution = execution
        self._size = size
        self.slots: list[Slot] = []
        self.stuck: set[Slot] = set()
        self.abandoned = 0

    @property
    def is_ready(self) -> bool:
        """Whether a job could run now, were a slot free."""
        return True

    @abstractmethod
    def put(self, work: Iterable[Work]) -> None:
        """Adds work. Safe on any thread."""

    @abstractmethod
    def clear(self) -> None:
        """Drops what has not started; the session knows which leases are held."""

    @abstractmethod
    def replace(self, slot: Slot, contexts: tuple[Context, ...]) -> None:
        """Replaces the slot of a stuck handler. Safe on any thread; does nothing if that handler,
        known by its `contexts`, has ended meanwhile.
        """

    def set_deadline(self, _deadline: datetime) -> None:
        """Tells handlers that run elsewhere when they will be asked to stop."""
        return

    def kill(self) -> None:
        """Ends handlers that can be ended, and returns when they have."""
        return

    def _give_up(self, slot: Slot, contexts: tuple[Context, ...]) -> bool:
        """Counts a handler as stuck. Returns True if it needs a successor."""
        if slot.is_replaced or slot.contexts is not contexts:
            return False
        if len(self.stuck) >= self._size:
            # Each stuck one keeps its thread or task and what it holds, so there is an end to it.
            logger.critical(
                "%d handlers hang on after their end, as many as may run: no more of them are "
                "replaced; restart this process",
                len(self.stuck),
            )
            return False
        self.abandoned += 1
        slot.is_replaced = True
        self.slots.remove(slot)
        self.stuck.add(slot)
        for context in contexts:
            self._execution.end(context)
        return True

    def _take_back(self, slot: Slot) -> None:
        """Counts a stuck handler as ended."""
        self.stuck.discard(slot)
        logger.warning("%s has ended at last; what it said is dropped", slot.name)
