"""What operators do with jobs, blocking; see `admin.py` for what all operators' services share."""

from __future__ import annotations

from collections.abc import Iterator

from jobline import operating
from jobline.blocking.connection import Connection
from jobline.blocking.pages import pages_of
from jobline.operating import PAGE_SIZE
from jobline.v1 import job_admin_service_pb2, job_admin_service_pb2_grpc
from jobline.v1.job_admin_service_pb2 import JobFilter
from jobline.v1.job_pb2 import Job


class JobApi:
    """`client.jobs`: what operators do with jobs. Many are chosen by ids (≤ 10,000) or by a
    filter; a filter without conditions needs `everything=True`.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def _stub(self) -> job_admin_service_pb2_grpc.JobAdminServiceStub:
        return self._connection.stub(job_admin_service_pb2_grpc.JobAdminServiceStub)

    def get(self, id_: int) -> Job:
        """One job, live or ended, with payload, result and attempts. Raises JobNotFound."""
        return self._connection.read(self._stub.GetJob, operating.get_job(id_)).job

    def get_by_key(self, queue: str, job_key: str) -> Job:
        """The job that was pushed with this idempotency key. Raises JobNotFound."""
        request = operating.get_job_by_key(queue, job_key)
        return self._connection.read(self._stub.GetJob, request).job

    def list_page(
        self,
        where: JobFilter | None = None,
        *,
        page_size: int = PAGE_SIZE,
        page_token: str = "",
        include_payloads: bool = False,
    ) -> job_admin_service_pb2.ListJobsResponse:
        """One page of jobs by id, `page_size` 1 … 1,000, and the token of the next one."""
        request = operating.list_jobs(
            where, page_size=page_size, page_token=page_token, include_payloads=include_payloads
        )
        return self._connection.read(self._stub.ListJobs, request)

    def list(
        self,
        where: JobFilter | None = None,
        *,
        include_payloads: bool = False,
        page_size: int = PAGE_SIZE,
    ) -> Iterator[Job]:
        """All jobs by id."""
        for page in pages_of(
            lambda token: self.list_page(
                where, page_size=page_size, page_token=token, include_payloads=include_payloads
            )
        ):
            yield from page.jobs

    def explain(self, id_: int) -> job_admin_service_pb2.ExplainJobResponse:
        """Why a job is not running, the first obstacle first. Raises JobNotFound."""
        request = job_admin_service_pb2.ExplainJobRequest(id=id_)
        return self._connection.read(self._stub.ExplainJob, request)

    def promote(
        self,
        *ids: int,
        where: JobFilter | None = None,
        everything: bool = False,
        dry_run: bool = False,
        reason: str = "",
    ) -> job_admin_service_pb2.PromoteJobsResponse:
        """Makes scheduled jobs ready now."""
        jobs = operating.selection(ids, where, everything=everything)
        request = job_admin_service_pb2.PromoteJobsRequest(
            jobs=jobs, dry_run=dry_run, reason=reason
        )
        return self._connection.write(self._stub.PromoteJobs, request)

    def cancel(
        self,
        *ids: int,
        where: JobFilter | None = None,
        everything: bool = False,
        dry_run: bool = False,
        reason: str = "",
    ) -> job_admin_service_pb2.CancelJobsResponse:
        """Cancels jobs: waiting ones at once, active ones when their worker settles them."""
        jobs = operating.selection(ids, where, everything=everything)
        request = job_admin_service_pb2.CancelJobsRequest(jobs=jobs, dry_run=dry_run, reason=reason)
        return self._connection.write(self._stub.CancelJobs, request)

    def retry(
        self,
        *ids: int,
        where: JobFilter | None = None,
        everything: bool = False,
        dry_run: bool = False,
        reason: str = "",
    ) -> job_admin_service_pb2.RetryJobsResponse:
        """Puts ended jobs back, dead, cancelled, expired and completed ones alike."""
        jobs = operating.selection(ids, where, everything=everything)
        request = job_admin_service_pb2.RetryJobsRequest(jobs=jobs, dry_run=dry_run, reason=reason)
        return self._connection.write(self._stub.RetryJobs, request)

    def delete(
        self,
        *ids: int,
        where: JobFilter | None = None,
        everything: bool = False,
        dry_run: bool = False,
        reason: str = "",
    ) -> job_admin_service_pb2.DeleteJobsResponse:
        """Deletes jobs that wait or have ended."""
        jobs = operating.selection(ids, where, everything=everything)
        request = job_admin_service_pb2.DeleteJobsRequest(jobs=jobs, dry_run=dry_run, reason=reason)
        return self._connection.write(self._stub.DeleteJobs, request)
