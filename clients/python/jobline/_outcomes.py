"""What a handler may say instead of returning or failing: raise one of these, or return it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from jobline._arguments import text_given
from jobline._base_errors import remade
from jobline._flow_values import FlowJob, jobs_of
from jobline._times import Seconds, seconds_of, to_timestamp
from jobline._values import JobError
from jobline.errors import InvalidArgument

_HOUR = 3_600
_DAY = 24 * _HOUR


def _span(what: str, span: Seconds, maximum: float) -> float:
    """Returns seconds within the protocol's bounds; a span outside would cost the worker its
    stream.
    """
    seconds = seconds_of(span)
    if not 0 <= seconds <= maximum:
        raise InvalidArgument(f"{what} is 0 … {maximum:,.0f} s, not {seconds:g}")
    return seconds


class Outcome(Exception):
    """Base of all outcomes. An exception, so that it ends a handler from wherever it is raised."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled as it is, whatever arguments its class is made with."""
        return remade, (type(self), self.args, self.__dict__)


class Retry(Outcome):
    """Fail this attempt, and try again after `after` (0 s … 24 h; default: the job's backoff).

    It uses an attempt, as any failure does; without one left the job is dead. `error`: what went
    wrong, for operators; default: the exception this one was raised `from`. A `JobError` says
    type, message, stack and details by itself. Raises InvalidArgument for a pause outside its
    bounds.
    """

    def __init__(
        self, after: Seconds | None = None, *, error: BaseException | JobError | str | None = None
    ) -> None:
        text = JobError.of(error).message if error is not None else "the handler asked for a retry"
        super().__init__(text)
        self.after = None if after is None else _span("the pause before a retry", after, _DAY)
        self.error = error


class Snooze(Outcome):
    """Not now: release the job for `after` (0 s … 400 days). It uses no attempt; ≤ 1,000 times a
    job. Raises InvalidArgument for a time outside its bounds.
    """

    def __init__(self, after: Seconds) -> None:
        self.after = _span("a snooze", after, 400 * _DAY)
        super().__init__(f"snoozed for {self.after:g} s")


class RateLimited(Outcome):
    """Not now, and none of its like: a limit outside is reached, such as a 429. The job is
    released, and nothing that passes `limiter` goes out until then, from any queue. It uses no
    attempt; ≤ 1,000 times a job.

    `limiter`: one of the job's `limiters`; "" is its group or, if it has none, its queue. `until`:
    an aware datetime, or how long from now (seconds, a timedelta, or text such as "90s"), at most
    400 days; the server limits for a day at most, unless it is set otherwise. A later time that was
    said before stays. Raises InvalidArgument for a time outside its bounds. If the job does not
    pass the limiter, it fails.
    """

    def __init__(self, limiter: str, until: datetime | Seconds) -> None:
        self.limiter = text_given("limiter", limiter)
        if not isinstance(until, datetime):
            span = timedelta(seconds=_span("the time of a limit", until, 400 * _DAY))
            until = datetime.now(UTC) + span
        to_timestamp(until)  # raises for one without a time zone
        self.until = until
        what = f"limiter {limiter!r}" if limiter else "its group or queue"
        super().__init__(f"{what} lets nothing out until {until.isoformat()}")


class WaitFor(Outcome):
    """Not yet: push these jobs, with their children, and wait for them.

    The job is BLOCKED and holds no place of the worker. When they have ended, its handler is called
    anew, with its checkpoint, the same `attempt` and `reason` CHILDREN_ENDED; `context.children()`
    has their results then. If one does not complete, the job's `on_dependency_failure` decides.

    All are stored, together with the end of this delivery, or none. It uses no attempt. A job has
    ≤ 1,000 children in all. Raises InvalidArgument without children.
    """

    def __init__(self, *children: FlowJob) -> None:
        if not children:
            raise InvalidArgument("a job needs at least one child to wait for")
        jobs_of(*children, field="children")
        self.children = children
        super().__init__(f"waits for {len(children)} children")


class Cancel(Outcome):
    """Not at all: the job is CANCELLED. `reason` is kept as its error, together with the exception
    that this one was raised `from`.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class Dead(Outcome):
    """Never again: the job goes to the dead letters, whatever attempts it has left.

    `reason` is kept as its error, together with the exception that this one was raised `from`.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class Stopped(Outcome):
    """The handler was asked to stop, and did: `context.raise_if_cancelled()` raises it in plain
    handlers.

    The reason decides what becomes of the job: it is cancelled, released, or leased by another
    worker already.
    """
