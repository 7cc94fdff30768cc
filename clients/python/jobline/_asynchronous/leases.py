"""Working by hand: pull, and settle what was pulled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jobline import _requests as requests
from jobline._arguments import list_given
from jobline._asynchronous.connection import Connection
from jobline._codec import type_of
from jobline._enums import FailActionName, ReleaseReasonName, SettleOutcome
from jobline._ids import RequestIds
from jobline._job_log import LogLevelName
from jobline._leased import LeasedJob
from jobline._release_item import release_item
from jobline._requests import Lease
from jobline._sealed_messages import open_jobs, seal_acks, seal_extend
from jobline._times import Moment, Seconds, seconds_of
from jobline._values import Failed, JobError, QueueWeight
from jobline.v1 import job_service_pb2 as pb


class Leases:
    """The part of `AsyncClient` that works by hand; a `Worker` does all of it by itself."""

    _connection: Connection
    _new_id: RequestIds

    async def pull(
        self,
        *queues: str | QueueWeight,
        max_jobs: int = 1,
        wait: Seconds = 0,
        lease: Seconds | None = None,
        worker: str = "",
        names: Iterable[str] = (),
    ) -> list[LeasedJob]:
        """Leases up to `max_jobs` (1 … 1,000) jobs of these queues, possibly none.

        `wait`: for the first job, 0 s … 60 s. `lease`: overrides the jobs' own, 1 s … 12 h; keep
        it alive with `extend`. `names`: only these kinds of work. Cancelled, it releases what it
        may have been leased. Raises InvalidArgument and other refusals, or Unavailable.
        """
        request = requests.pull_request(
            queues,
            max_jobs=max_jobs,
            wait=wait,
            lease=lease,
            worker=worker,
            names=names,
            request_id=self._new_id(),
        )
        jobs = requests.jobs_of(await self._connection.pull(request, seconds_of(wait)))
        open_jobs(self._connection.codec, jobs)
        return jobs

    async def ack(self, *jobs: Lease, result: Any = None) -> list[SettleOutcome]:
        """Settles jobs (or (id, delivery) pairs) as done; a `result` (bytes, or JSON; ≤ 1 MiB) is
        kept with each of them. Returns the outcome of each: LEASE_LOST means that nothing changed.
        No jobs, no call.
        """
        if not jobs:
            return []
        request = requests.ack_request(jobs, result)
        seal_acks(self._connection.codec, jobs, request, type_of(result))
        response = await self._connection.write(self._connection.jobs.Ack, request)
        return requests.outcomes_of(response, len(jobs))

    async def fail(
        self,
        job: Lease,
        error: BaseException | JobError | str | None = None,
        *,
        then: FailActionName = "retry",
        retry_after: Seconds | None = None,
    ) -> Failed:
        """Settles a job as failed: it is retried after its backoff (or `retry_after`, 0 s … 24 h)
        while attempts are left; `then="dead"` sends it to the dead letters, "cancel" cancels it.
        """
        item = requests.fail_item(job, error, then=then, retry_after=retry_after)
        response = await self._connection.write(
            self._connection.jobs.Fail, pb.FailRequest(items=[item])
        )
        return requests.failed_of(response.results[0])

    async def release(
        self,
        *jobs: Lease,
        delay: Seconds | None = None,
        why: ReleaseReasonName = "interrupted",
        until: Moment | None = None,
        limiter: str = "",
    ) -> list[SettleOutcome]:
        """Releases jobs without failing them: at once and at the front, or after a `delay` (≤ 400
        days). With `why="limited"`, nothing of their groups goes out `until` a time, or of the
        queue of a job without a group; or nothing that passes a `limiter`, one of the job's own.
        No jobs, no call.
        """
        if not jobs:
            return []
        items = [
            release_item(job, delay=delay, why=why, until=until, limiter=limiter) for job in jobs
        ]
        response = await self._connection.write(
            self._connection.jobs.Release, pb.ReleaseRequest(items=items)
        )
        return requests.outcomes_of(response, len(jobs))

    async def extend(  # noqa: PLR0913  # one argument a field of the protocol's message
        self,
        *jobs: Lease,
        lease: Seconds | None = None,
        progress: float | None = None,
        message: str | None = None,
        checkpoint: Any = None,
        log: Iterable[str] = (),
        level: LogLevelName = "info",
        phase: str = "",
        phase_result: Any = None,
    ) -> list[SettleOutcome]:
        """Keeps leases alive, by `lease` (1 s … 12 h) or their own length from now, and reports
        `progress` (0 … 100), a `message`, a `checkpoint` (bytes or JSON, ≤ 64 KiB, on disk before
        this returns), and lines of a `log` (≤ 1,000, each cut at 16 KiB) with their `level`.
        `phase`: the phase that has ended, with its result (bytes or JSON), on disk before this
        returns, too.

        LEASE_LOST: stop, another worker has the job. CANCELLED: stop, and settle it. No jobs, no
        call.
        """
        if not jobs:
            return []
        lines = list_given("log", log)
        items = [
            requests.extend_item(
                job,
                lease=lease,
                progress=progress,
                message=message,
                checkpoint=checkpoint,
                log=lines,
                level=level,
                phase=phase,
                phase_result=phase_result,
            )
            for job in jobs
        ]
        for job, item in zip(jobs, items, strict=True):
            seal_extend(self._connection.codec, job, item)
        response = await self._connection.write(
            self._connection.jobs.Extend, pb.ExtendRequest(items=items)
        )
        return requests.outcomes_of(response, len(jobs))
