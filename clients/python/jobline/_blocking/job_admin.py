# Generated from jobline/_asynchronous/job_admin.py by `make gen`: change that file instead.
"""What operators do with jobs, blocking; see `admin.py` for what all operators' services share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Unpack

from jobline import _admin_requests as admin_requests
from jobline._admin_requests import PAGE_SIZE, UNCHANGED
from jobline._arguments import message_of
from jobline._blocking.connection import Connection
from jobline._blocking.pages import pages_of
from jobline._filters import JobConditions, JobFilter, chosen
from jobline._job_log import JobLog, LogLevelName
from jobline._job_values import BulkResult, Explanation, Job, JobPage
from jobline._keywords import spelled_out
from jobline._reading import read
from jobline._times import Seconds
from jobline.v1 import job_admin_service_pb2, job_admin_service_pb2_grpc


class JobApi:
    """`client.jobs`: what operators do with jobs.

    Jobs are chosen by the fields of a `JobFilter` as keywords (`queue="mail", state="dead"`), by
    the words of the command line (`"queue:mail state:dead older:1h"`), or by a `JobFilter`. Calls
    that change many take ids too (≤ 10,000), and without any condition they need
    `everything=True`.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def _stub(self) -> job_admin_service_pb2_grpc.JobAdminServiceStub:
        return self._connection.stub(job_admin_service_pb2_grpc.JobAdminServiceStub)

    def get(self, id_: int) -> Job:
        """Returns one job, live or ended, with payload, result and attempts. Raises JobNotFound."""
        request = admin_requests.get_job(id_)
        response = self._connection.read(self._stub.GetJob, request)
        return Job.from_message(response.job)

    def get_by_key(self, queue: str, job_key: str) -> Job:
        """Returns the job that was pushed with this idempotency key. Raises JobNotFound."""
        request = admin_requests.get_job_by_key(queue, job_key)
        response = self._connection.read(self._stub.GetJob, request)
        return Job.from_message(response.job)

    def log(self, id_: int, *, after: int = 0, level: LogLevelName = "debug") -> JobLog:
        """Returns the log of a job, live or ended: lines of this `level` and above, with numbers
        above `after`. Raises JobNotFound.
        """
        request = admin_requests.get_job_log(id_, after, level)
        return read(JobLog, self._connection.read(self._stub.GetJobLogs, request))

    def get_by_unique_key(self, queue: str, unique_key: str) -> Job:
        """Returns the job that holds this unique key. Raises JobNotFound."""
        request = admin_requests.get_job_by_unique_key(queue, unique_key)
        response = self._connection.read(self._stub.GetJob, request)
        return Job.from_message(response.job)

    @spelled_out(JobConditions)
    def list_page(
        self,
        where: str | JobFilter | None = None,
        *,
        page_size: int = PAGE_SIZE,
        page_token: str = "",
        include_payloads: bool = False,
        **conditions: Unpack[JobConditions],
    ) -> JobPage:
        """Returns one page of jobs by id, `page_size` 1 … 1,000, and the token of the next page.

        All pages need the same filter: make a `JobFilter` first where it has `older` or `newer`.
        """
        request = admin_requests.list_jobs(
            chosen(JobFilter, where, conditions, "list_page"),
            page_size=page_size,
            page_token=page_token,
            include_payloads=include_payloads,
        )
        return read(JobPage, self._connection.read(self._stub.ListJobs, request))

    @spelled_out(JobConditions)
    def list(
        self,
        where: str | JobFilter | None = None,
        *,
        include_payloads: bool = False,
        page_size: int = PAGE_SIZE,
        **conditions: Unpack[JobConditions],
    ) -> Iterator[Job]:
        """Yields the chosen jobs by id: `list(queue="mail", state="dead")`, `list("queue:mail
        state:dead older:1h")`.

        - `where`: words of the command line, or a `JobFilter`; the keywords go before it.
        - `queue`, `name`, `state` (one or several), `headers`, `error_type`, `error_contains`,
          `after`, `before`, `newer`, `older`, `tags`: what must hold; see `JobFilter`.
        - `include_payloads`: with payloads, results and checkpoints, which are left out otherwise.

        Raises InvalidArgument at the call, and Unavailable while it is read, if no server answers.
        """
        found = chosen(JobFilter, where, conditions, "list")
        return self._listed(found, include_payloads=include_payloads, page_size=page_size)

    def _listed(
        self, where: JobFilter | None, *, include_payloads: bool, page_size: int
    ) -> Iterator[Job]:
        for page in pages_of(
            lambda token: self.list_page(
                where, page_size=page_size, page_token=token, include_payloads=include_payloads
            )
        ):
            yield from page.jobs

    def explain(self, id_: int) -> Explanation:
        """Returns why a job is not running, the first obstacle first. Raises JobNotFound."""
        request = admin_requests.explain_job(id_)
        return read(Explanation, self._connection.read(self._stub.ExplainJob, request))

    def update(
        self,
        id_: int,
        *,
        payload: Any = UNCHANGED,
        priority: int | None = None,
        delay: Seconds | None = None,
        reason: str = "",
    ) -> Job:
        """Changes a job that waits, and returns it as it is then. With another `priority` it goes
        to the end of those that have it; `delay` is from now, 0 makes it ready. A new `payload`
        keeps the content type. Raises JobNotFound, and WrongState for a job that is active or has
        ended.
        """
        request = admin_requests.update_job(id_, payload, priority, delay, reason)
        response = self._connection.write(self._stub.UpdateJob, request)
        return Job.from_message(response.job)

    def forget_key(self, queue: str, job_key: str, *, reason: str = "") -> int:
        """Forgets an idempotency key before its window ends, so that the next push with it is a new
        job; returns the id of the job that it named. Raises JobNotFound.
        """
        request = admin_requests.forget_key(queue, job_key, reason)
        response = self._connection.write(self._stub.ForgetKey, request)
        return response.job_id

    def forget_unique_key(self, queue: str, unique_key: str, *, reason: str = "") -> int:
        """Frees a unique key: the job that holds it goes on without, and one that waits for it
        takes it over. Returns the id of the job that held it. Raises JobNotFound.
        """
        request = admin_requests.forget_unique_key(queue, unique_key, reason)
        response = self._connection.write(self._stub.ForgetKey, request)
        return response.job_id

    @spelled_out(JobConditions)
    def promote(
        self,
        *which: int | str | JobFilter,
        everything: bool = False,
        dry_run: bool = False,
        reason: str = "",
        **conditions: Unpack[JobConditions],
    ) -> BulkResult:
        """Makes scheduled jobs ready now."""
        jobs = admin_requests.selection(
            which, conditions, everything=everything, function="promote"
        )
        request = message_of(
            job_admin_service_pb2.PromoteJobsRequest, jobs=jobs, dry_run=dry_run, reason=reason
        )
        return BulkResult.from_message(self._connection.write(self._stub.PromoteJobs, request))

    @spelled_out(JobConditions)
    def cancel(
        self,
        *which: int | str | JobFilter,
        everything: bool = False,
        below: bool = False,
        dry_run: bool = False,
        reason: str = "",
        **conditions: Unpack[JobConditions],
    ) -> BulkResult:
        """Cancels jobs: waiting ones at once, active ones when their worker settles them. With
        `below` also those that they wait for, unless they are running or others wait for them.
        """
        jobs = admin_requests.selection(which, conditions, everything=everything, function="cancel")
        request = message_of(
            job_admin_service_pb2.CancelJobsRequest,
            jobs=jobs,
            below=below,
            dry_run=dry_run,
            reason=reason,
        )
        return BulkResult.from_message(self._connection.write(self._stub.CancelJobs, request))

    @spelled_out(JobConditions)
    def retry(
        self,
        *which: int | str | JobFilter,
        everything: bool = False,
        dry_run: bool = False,
        reason: str = "",
        **conditions: Unpack[JobConditions],
    ) -> BulkResult:
        """Puts ended jobs back, dead, cancelled, expired and completed ones alike."""
        jobs = admin_requests.selection(which, conditions, everything=everything, function="retry")
        request = message_of(
            job_admin_service_pb2.RetryJobsRequest, jobs=jobs, dry_run=dry_run, reason=reason
        )
        return BulkResult.from_message(self._connection.write(self._stub.RetryJobs, request))

    @spelled_out(JobConditions)
    def delete(
        self,
        *which: int | str | JobFilter,
        everything: bool = False,
        dry_run: bool = False,
        reason: str = "",
        **conditions: Unpack[JobConditions],
    ) -> BulkResult:
        """Deletes jobs that wait or have ended."""
        jobs = admin_requests.selection(which, conditions, everything=everything, function="delete")
        request = message_of(
            job_admin_service_pb2.DeleteJobsRequest, jobs=jobs, dry_run=dry_run, reason=reason
        )
        return BulkResult.from_message(self._connection.write(self._stub.DeleteJobs, request))
