"""`Context`: what a handler knows about its job, and what it reports while it works."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from jobline import _codec as codec
from jobline import _typed_json as typed_json
from jobline._arguments import text_given
from jobline._cancel_reason import CancelReason
from jobline._enums import LeaseReason, named
from jobline._flow_values import FlowNode
from jobline._job_log import LogLevel, LogLevelName
from jobline._leased import LeasedJob
from jobline._outcomes import Stopped
from jobline._phases import Phases
from jobline._reporting import Calls, NoCalls, Reporting
from jobline._spawns import of_spawn
from jobline._values import Pushed, short
from jobline.errors import InvalidArgument

P = TypeVar("P")

CHECKPOINT_BYTES_MAX = 64 << 10
PIECE_BYTES_MAX = 64 << 10

_NO_CALLS = NoCalls()

# Held while an event or a counter is made, which few handlers need: one lock for all will do.
_EVENTS = threading.Lock()


class Context:
    """One delivery of one job, for its handler. Safe to use from any thread.

    - `job`: everything the server sent; the properties below are shortcuts to it.
    - `state`: what the worker's lifespan yielded.
    - `checkpoint`: what this attempt, or an earlier one, has saved; b"" if nothing.
    - `deadline`: when the handler will be asked to stop, in UTC; None while no end is set: after
      the job's own `attempt_timeout`, counted from the start of the handler, which may be a moment
      later than the server counts; for a worker that stops at the end of its soft stop.
    - `cancel_reason`: why the handler should stop; None while it should go on. An async handler is
      cancelled too (`asyncio.CancelledError`); a plain one checks `cancelled`.
    """

    __slots__ = (
        "_calls",
        "_event",
        "_phases",
        "_reporting",
        "_spawns",
        "_stop",
        "cancel_reason",
        "checkpoint",
        "deadline",
        "job",
        "state",
    )

    def __init__(
        self,
        job: LeasedJob,
        reporting: Reporting,
        state: Any = None,
        calls: Calls = _NO_CALLS,
    ) -> None:
        self.job = job
        self.state = state
        self.checkpoint = job.checkpoint
        self.deadline: datetime | None = None
        self.cancel_reason: CancelReason | None = None
        self._reporting = reporting
        self._calls = calls
        self._phases: Phases | None = None
        self._event: threading.Event | None = None
        self._spawns: Iterator[int] | None = None
        self._stop: Callable[[], object] | None = None

    @property
    def id(self) -> int:
        """The job's id."""
        return self.job.id

    @property
    def delivery(self) -> int:
        """The lease's counter. It only grows with each delivery of the job, so it serves as a
        fencing token: what this handler writes to may refuse an older one.
        """
        return self.job.delivery

    @property
    def attempt(self) -> int:
        """Number of this attempt, from 1; a job that was released or lost has the same again."""
        return self.job.attempt

    @property
    def reason(self) -> LeaseReason:
        """Why the job was leased: for the first time, or again."""
        return self.job.reason

    @property
    def queue(self) -> str:
        """The job's queue."""
        return self.job.queue

    @property
    def name(self) -> str:
        """The kind of work."""
        return self.job.name

    @property
    def group(self) -> str:
        """The job's group, "" without one: no other job of it runs meanwhile."""
        return self.job.group

    @property
    def continues_group(self) -> bool:
        """Whether this worker had the last job of the group, too: what it keeps of it in memory
        still holds. False unless the job is `sticky`.
        """
        return self.job.continues_group

    @property
    def headers(self) -> dict[str, str]:
        """The headers it was pushed with."""
        return self.job.headers

    @property
    def job_key(self) -> str:
        """Its idempotency key, or ""."""
        return self.job.job_key

    @property
    def phases(self) -> Phases:
        """The phases of the job: which are finished, what they returned, and how to finish the
        next one.
        """
        if self._phases is None:
            self._phases = Phases(
                tuple(self.job.options_message.phases),
                self.job.phase_results,
                lambda name, result: self._reporting.finish_phase(self.job, name, result),
            )
        return self._phases

    def children(self) -> list[FlowNode]:
        """Asks the server for the children of the job, with their results, in their order: those of
        its flow, then those that it added. For plain handlers. Unavailable: no answer for 20 s.
        """
        return self._calls.children(self.job.id)

    async def children_async(self) -> list[FlowNode]:
        """Returns the same, for async handlers."""
        return await asyncio.to_thread(self.children)

    # ------------------------------------------------------------------ more jobs

    def spawn(self, job: Any, *values: Any, spawn_key: str | None = None, **how: Any) -> Pushed:
        """Pushes another job, for plain handlers: `context.spawn("mail", {"to": …})`, or a declared
        one with what its `push` takes, `context.spawn(resize, path="a.png")`.

        An attempt that runs again pushes nothing twice: the job has a key made of the id of this
        job and `spawn_key` (≤ 200 bytes), by default its number among the spawns of the attempt.
        It joins the batch of this job, if it has one. The keywords and errors are those of
        `Client.push`; IdempotencyMismatch: an earlier attempt has spawned something else with this
        key. Keys are kept for 24 hours.
        """
        return self._calls.spawn(job, values, self._of_spawn(job, spawn_key, how), how)

    async def spawn_async(
        self, job: Any, *values: Any, spawn_key: str | None = None, **how: Any
    ) -> Pushed:
        """Pushes another job as `spawn` does, for async handlers."""
        own = self._of_spawn(job, spawn_key, how)
        return await self._calls.spawn_async(job, values, own, how)

    def _of_spawn(self, job: Any, key: str | None, how: dict[str, Any]) -> dict[str, Any]:
        with _EVENTS:
            counter = self._spawns = self._spawns or itertools.count(1)
        return of_spawn(self.job, job, key if key is not None else next(counter), how)

    # ------------------------------------------------------------------ reports of the handler

    def progress(self, percent: float, message: str | None = None) -> None:
        """Reports progress, 0 … 100 (of the current phase, if the job has phases), and what the
        handler is doing, in one sentence that is cut at 4 KiB.

        Returns at once; reports that come faster than they can be sent are merged. Raises
        InvalidArgument for a number that is not within 0 … 100.
        """
        if not 0 <= percent <= 100:
            raise InvalidArgument(f"progress is 0 … 100, not {percent}")
        text = None if message is None else short(message)
        self._reporting.report(self.job, progress=percent, message=text)

    def log(self, text: str, level: LogLevelName = LogLevel.INFO) -> None:
        """Writes a line to the job's log, which keeps the last 1,000 lines and 1 MiB: see
        `client.jobs.log` and `jobline job logs`. `level`: "debug", "info", "warning" or "error".

        Returns at once; lines are sent in batches, always before the job's outcome. A line is cut
        at 16 KiB.
        """
        self._reporting.log(self.job, named(LogLevel, level), text_given("text", text))

    def partial(self, value: Any) -> None:
        """Sends a piece of the result, bytes or a JSON value of ≤ 64 KiB, to those who wait for it:
        `client.partials(id)`, `jobline job follow`.

        Returns at once; pieces are sent in order, always before the job's outcome, and kept in
        memory alone: the last 1 MiB of a job that runs. Raises CodecError for what has no JSON,
        InvalidArgument for what is empty or larger.
        """
        data, _ = codec.encode(value)
        if not 0 < len(data) <= PIECE_BYTES_MAX:
            raise InvalidArgument(f"a piece has 1 byte … 64 KiB, not {len(data)} bytes")
        self._reporting.report(self.job, partial=data)

    def save_checkpoint(self, value: Any) -> None:
        """Saves bytes or a JSON value, ≤ 64 KiB, for a later attempt, and for `checkpoint` here.

        Returns at once; the checkpoint is sent with the next frame, always before the job's
        outcome. If it must be on disk before the handler goes on, use `client.extend(context.job,
        checkpoint=…)`. Raises CodecError for what has no JSON, InvalidArgument for what is larger.
        """
        data, _ = codec.encode(value)
        if len(data) > CHECKPOINT_BYTES_MAX:
            raise InvalidArgument(f"a checkpoint is at most 64 KiB, not {len(data)} bytes")
        self.checkpoint = data
        self._reporting.report(self.job, checkpoint=data)

    def checkpoint_value(self, kind: Any = Any) -> Any:
        """Returns the checkpoint as a type (default: JSON); None if there is none. Raises
        CodecError.
        """
        return typed_json.decode_as(kind, self.checkpoint, codec.JSON) if self.checkpoint else None

    # ------------------------------------------------------------------ what ends it early

    @property
    def cancelled(self) -> bool:
        """Whether the handler should stop; `cancel_reason` is why."""
        return self.cancel_reason is not None

    def raise_if_cancelled(self) -> None:
        """For plain handlers that stop early: raises Stopped if the handler should stop. A handler
        that just returns counts as done.
        """
        if self.cancel_reason is not None:
            raise Stopped(self.cancel_reason.value)

    def wait_cancelled(self, timeout: float | None = None) -> bool:
        """For plain handlers: waits up to `timeout` seconds for a cancellation; returns whether
        there is one.
        """
        self.cancel_event.wait(timeout)
        return self.cancelled

    @property
    def cancel_event(self) -> threading.Event:
        """For plain handlers that wait for several things: set when the handler should stop."""
        with _EVENTS:  # threads of one handler share one event
            event = self._event = self._event or threading.Event()
        if self.cancel_reason is not None:  # after the event is there for `cancel` to find
            event.set()
        return event

    def cancel(self, reason: CancelReason) -> None:
        """Asks the handler to stop; the worker calls this, and so may tests."""
        if self.cancel_reason is not None:
            return
        self.cancel_reason = reason
        if self._event is not None:
            self._event.set()
        if self._stop is not None:
            self._stop()

    def on_cancel(self, stop: Callable[[], object] | None) -> None:
        """Sets how to stop the handler; called on any thread, perhaps at once."""
        self._stop = stop
        if stop is not None and self.cancel_reason is not None:
            stop()


@dataclass(frozen=True, slots=True)
class BatchItem(Generic[P]):
    """One job of a batch: its payload as the declared type, and its context."""

    payload: P
    context: Context

    @property
    def id(self) -> int:
        """The job's id."""
        return self.context.id
