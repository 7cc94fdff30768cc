"""Waiting for jobs to end, and watching what happens."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Protocol, TypeVar

from jobline._backoff import RETRY
from jobline._blocking.connection import Connection, typed_errors
from jobline._enums import EventKindName
from jobline._requests import Waiting, Watching
from jobline._server_values import WatchedEvent
from jobline._times import Seconds
from jobline._values import JobEnd
from jobline.errors import JoblineError

Message = TypeVar("Message")
Message_co = TypeVar("Message_co", covariant=True)


class Observer:
    """The part of `Client` that waits and watches."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def wait(self, *ids: int, timeout: Seconds = 60) -> Iterator[JobEnd]:
        """How jobs end, each as it ends; ended ones come at once.

        `ids`: 1 … 10,000. `timeout`: in all, 0 s … 1 h; what has not ended by then is left out. A
        broken connection is opened again. Raises InvalidArgument and other refusals, and
        Unavailable when no server answered in that time.
        """
        waiting = Waiting(time.monotonic(), ids, timeout)
        self._connection.reach()
        tries = 0
        while (request := waiting.request(time.monotonic())) is not None:
            deadline = request.timeout.seconds + self._connection.timeout
            start = partial(
                self._connection.jobs.Wait,
                request,
                timeout=deadline,
                metadata=self._connection.metadata,
            )
            try:
                for response in _closing(start):
                    tries = 0
                    yield waiting.take(response)
            except JoblineError as error:
                tries += 1
                pause = RETRY.after(tries, random.random)
                if not error.retryable or time.monotonic() + pause > waiting.until:
                    raise
                time.sleep(pause)
            else:
                return

    def wait_one(self, id_: int, *, timeout: Seconds = 60) -> JobEnd:
        """How one job ended. Raises WaitTimeout if it has not ended in time, and the errors of
        `wait`.
        """
        waiting = Waiting(time.monotonic(), [id_], timeout)
        for end in self.wait(id_, timeout=timeout):
            return end
        raise waiting.timed_out()

    def watch(
        self,
        *,
        queues: Iterable[str] = (),
        job_id: int | None = None,
        kinds: Iterable[EventKindName] = (),
        resume_token: str = "",
    ) -> Iterator[WatchedEvent]:
        """What happens, from now on or after a resume token, without end.

        Only these queues, this job, these kinds; none means all. A broken connection is opened
        again where it broke. Each event carries the token to resume after it, also over a restart
        of the server. Raises OffsetGone if the events after the token are gone, and other refusals.
        """
        watching = Watching(queues=queues, job_id=job_id, kinds=kinds, resume_token=resume_token)
        self._connection.reach()
        while True:
            start = partial(
                self._connection.jobs.Watch,
                watching.request(),
                metadata=self._connection.metadata,
            )
            try:
                for response in _closing(start):
                    yield from watching.take(response)
            except JoblineError as error:
                if not error.retryable or error.definite:
                    raise
            time.sleep(RETRY.after(watching.tries, random.random))


class _Call(Protocol[Message_co]):
    """A call that streams answers."""

    def __iter__(self) -> Iterator[Message_co]: ...

    def cancel(self) -> bool: ...


def _closing(start: Callable[[], _Call[Message]]) -> Iterator[Message]:
    """The messages of a call, which is cancelled when nobody reads on."""
    with typed_errors():
        call = start()
        try:
            yield from call
        finally:
            call.cancel()
