# Generated from jobline/_asynchronous/observer.py by `make gen`: change that file instead.
"""Waiting for jobs to end, and watching what happens."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from functools import partial

from jobline._arguments import list_given
from jobline._backoff import RETRY
from jobline._blocking.cleanup import Cleanup
from jobline._blocking.connection import Connection, closing, messages_of, now, sleep
from jobline._blocking.waits import Waits, responses_until
from jobline._event_kinds import EventKindName
from jobline._forks import PerProcess
from jobline._job_end import JobEnd
from jobline._moved_clocks import clock_of
from jobline._partial import Partial
from jobline._position_file import PathGiven
from jobline._requests import Watching
from jobline._server_values import WatchedEvent
from jobline._times import Seconds
from jobline._wait.waiting import Waiting
from jobline.errors import DeadlineExceeded, JoblineError
from jobline.v1.job_service_pb2 import WaitResponse, WatchResponse


class Observer:
    """The part of `Client` that waits and watches."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._waits = PerProcess(lambda: Waits(connection))

    def wait(self, *ids: int, timeout: Seconds = 60) -> Iterator[JobEnd]:
        """Yields how jobs end, each as it ends; ended ones come at once.

        `ids`: 1 … 10,000. `timeout`: in all, 0 s … 1 h, by the clock of this machine; what has not
        ended by then is left out. Waits for few jobs share calls. A broken connection is opened
        again. Raises InvalidArgument and other refusals, and Unavailable when no server answered
        in that time.
        """
        waiting = self._waiting(ids, timeout)
        with closing(self._told(waiting)) as responses:
            for response in responses:
                yield waiting.take(response)

    def partials(self, id_: int, *, timeout: Seconds = 60) -> Iterator[Partial]:
        """Yields the pieces of a job's result that its handler sends (`context.partial`), until the
        job has ended; then `wait_one` returns how, at once.

        It begins with the oldest piece that the server still has: 1 MiB of a job that runs, none of
        one that has ended. `timeout`: in all, 0 s … 1 h. Raises WaitTimeout if the job has not
        ended by then, JobNotFound if there is no such job, and the errors of `wait`.
        """
        waiting = self._waiting([id_], timeout, partials=True)
        with closing(self._responses(waiting)) as responses:
            for response in responses:
                piece = waiting.take_piece(response)
                if piece is not None:
                    yield piece
                elif response.not_found:
                    raise JobEnd.from_message(response).exception()
        if waiting.remaining:
            raise waiting.timed_out()

    def _waiting(self, ids: Iterable[int], timeout: Seconds, *, partials: bool = False) -> Waiting:
        moved = clock_of(self._connection.target).seconds
        return Waiting(now(), ids, timeout, partials=partials, moved=moved)

    def _told(self, waiting: Waiting) -> Iterator[WaitResponse]:
        """Yields the responses to a wait, which shares calls with others if it can."""
        link = self._connection
        if waiting.is_shared():
            link.reach()
            waits = self._waits()
            with waits.joined(waiting) as waiter:
                while waiting.remaining and (one := waits.answer(waiter)) is not None:
                    yield link.opened(one)
            if not waiting.is_moved:
                return
        with closing(self._responses(waiting)) as responses:
            yield from responses

    def _responses(self, waiting: Waiting) -> Iterator[WaitResponse]:
        """Yields the responses to a wait by calls of its own, over broken connections. Where a test
        has moved the clock of its server, the last one asks what has ended by then.
        """
        link = self._connection
        link.reach()
        tries = 0
        while (request := waiting.request(now())) is not None:
            # Without time left it asks what has ended already, and whether there is a server.
            left = request.timeout.ToNanoseconds() / 1e9 or link.timeout
            start = partial(link.jobs.Wait, request, timeout=left, metadata=link.metadata)
            try:
                with closing(responses_until(link, waiting, start)) as responses:
                    for response in responses:
                        tries = 0
                        yield link.opened(response)
            except JoblineError as error:
                tries += 1
                pause = RETRY.after(tries, random.random)
                is_late = now() + pause > waiting.until
                if is_late and isinstance(error, DeadlineExceeded) and left < link.timeout:
                    return
                if not error.retryable or is_late:
                    raise
                sleep(pause)
            else:
                # It was told to keep the wait open until then: the call has broken politely.
                is_last = not request.timeout.ToNanoseconds() or not waiting.is_moved
                left = max(0.0, waiting.until - now())
                if not waiting.remaining or (not left and is_last):
                    return
                tries += 1
                sleep(min(RETRY.after(tries, random.random), left))

    def wait_one(self, id_: int, *, timeout: Seconds = 60) -> JobEnd:
        """Returns how one job ended. Raises WaitTimeout if it has not ended in time, and the errors
        of `wait`.
        """
        waiting = self._waiting([id_], timeout)
        with closing(self._told(waiting)) as responses:
            for response in responses:
                return waiting.take(response)
        raise waiting.timed_out()

    def watch(
        self,
        *,
        queues: Iterable[str] = (),
        job_id: int | None = None,
        kinds: Iterable[EventKindName] = (),
        resume_token: str = "",
    ) -> Iterator[WatchedEvent]:
        """Yields events, from now on or after a resume token, without end.

        Only these queues, this job, these kinds; none means all. The kind "partial", the pieces of
        a job's result, is for a `job_id` and must be named. A broken connection is opened
        again where it broke. Each event carries the token to resume after it, also over a restart
        of the server. Raises OffsetGone if the events after the token are gone, and other refusals.
        """
        watching = Watching(queues=queues, job_id=job_id, kinds=kinds, resume_token=resume_token)
        with closing(self._answers(watching)) as answers:
            for answer in answers:
                yield from watching.take(answer)

    def cleanup(self, position: PathGiven, *, queues: Iterable[str] = ()) -> Cleanup:
        """Returns a loop that calls handlers for jobs that became stale or were deleted, so that
        what they left elsewhere is removed with them.

        `position`: a file of its own, in which it keeps how far it is; its directory must exist.
        `queues`: only jobs of these; none means all. Raises InvalidArgument.
        """
        return Cleanup(self._answers, position, list_given("queues", queues))

    def _answers(self, watching: Watching) -> Iterator[WatchResponse]:
        """Yields the answers to a watch, heartbeats too, over broken connections. Each must be
        taken by `watching` before the next.
        """
        link = self._connection
        link.reach()
        while True:
            start = partial(link.jobs.Watch, watching.request(), metadata=link.metadata)
            try:
                with closing(messages_of(start)) as responses:
                    for response in responses:
                        yield link.opened(response)
            except JoblineError as error:
                if not error.retryable or error.definite:
                    raise
            sleep(RETRY.after(watching.tries, random.random))
