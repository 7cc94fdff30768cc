"""One job, brought to an attempt by hand and then handled by a worker of its own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from jobline import Client, Job, JobState, JobType, Worker
from jobline._handlers import UNSAID
from jobline._leased import LeasedJob

Handler = JobType[Any, Any] | Callable[..., Any]

_numbers = count(1)


class Prepared:
    """A job that was pushed to a queue of its own."""

    def __init__(self, client: Client, handler: Handler, queue: str, job_id: int) -> None:
        self.queue = queue
        self._client = client
        self._handler = handler
        self._id = job_id

    def bring_to(self, attempt: int, checkpoint: Any, settle: Callable[[], object]) -> None:
        """Fails it until the next attempt is this one, and leaves a checkpoint. `settle` has done
        what is due.
        """
        if attempt < 1:
            raise ValueError("attempt: the first is 1")
        job = self._client.jobs.get(self._id)
        if job.state is JobState.SCHEDULED:
            self._client.jobs.promote(self._id)
        for number in range(1, attempt):
            leased = self._lease(f"attempt {number}")
            if checkpoint is not None and number == attempt - 1:
                self._client.extend(leased, checkpoint=checkpoint)
            self._client.fail(leased, "an earlier attempt", retry_after=0)
            settle()
        if checkpoint is not None and attempt == 1:
            leased = self._lease("attempt 1")
            self._client.extend(leased, checkpoint=checkpoint)
            self._client.release(leased)
        self._check_ready(f"attempt {attempt}")

    def _lease(self, what: str) -> LeasedJob:
        self._check_ready(what)
        (leased,) = self._client.pull(self.queue)
        return leased

    def _check_ready(self, what: str) -> None:
        job = self._client.jobs.get(self._id)
        if job.state is not JobState.READY:
            raise AssertionError(f"{what} cannot be made: the job is {job.state.name}; {_why(job)}")

    def worker(self, address: str) -> Worker:
        """Returns a worker for it alone."""
        handler = self._handler
        worker = Worker(address, concurrency=1, window=1)
        if isinstance(handler, JobType):
            if handler.function is None:
                raise ValueError(f"{handler!r} has no function: it is for producers alone")
            kind = handler.payload if handler.payload is not Any else UNSAID
            worker.handler(self.queue, handler.name, payload=kind)(handler.function)
        else:
            worker.handler(self.queue)(handler)
        return worker

    def done(self) -> Job:
        """Returns the job as it is now."""
        return self._client.jobs.get(self._id)


def prepare(client: Client, handler: Handler, payload: Any, options: dict[str, Any]) -> Prepared:
    """Pushes the job."""
    queue = f"work-one-{next(_numbers)}"
    if isinstance(handler, JobType):
        data, declared = handler.encode(payload)
        pushed = client.push(queue, data, options=declared, **options)
    else:
        pushed = client.push(queue, payload, **options)
    return Prepared(client, handler, queue, pushed.id)


def _why(job: Job) -> str:
    if job.state is JobState.DEAD:
        return f"its attempts are {job.failed} (max_attempts)"
    return "it waits for something"
