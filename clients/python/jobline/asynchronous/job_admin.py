"""What operators do with jobs, awaited; see `admin.py` for what all operators' services share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import cached_property

from jobline import operating
from jobline.asynchronous.pages import Link, pages_of
from jobline.operating import PAGE_SIZE
from jobline.v1 import job_admin_service_pb2, job_admin_service_pb2_grpc
from jobline.v1.job_admin_service_pb2 import JobFilter
from jobline.v1.job_pb2 import Job


class JobApi:
    """`client.jobs`: what operators do with jobs. Many are chosen by ids (≤ 10,000) or by a
    filter; a filter without conditions needs `everything=True`.
    """

    def __init__(self, link: Link) -> None:
        self._link = link

    @cached_property
    def _stub(self) -> job_admin_service_pb2_grpc.JobAdminServiceAsyncStub:
        return job_admin_service_pb2_grpc.JobAdminServiceStub(self._link().channel)

    async def get(self, id_: int) -> Job:
        """One job, live or ended, with payload, result and attempts. Raises JobNotFound."""
        return (await self._link().read(self._stub.GetJob, operating.get_job(id_))).job

    async def get_by_key(self, queue: str, job_key: str) -> Job:
        """The job that was pushed with this idempotency key. Raises JobNotFound."""
        request = operating.get_job_by_key(queue, job_key)
        return (await self._link().read(self._stub.GetJob, request)).job

    async def list_page(
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
        return await self._link().read(self._stub.ListJobs, request)

    async def list(
        self,
        where: JobFilter | None = None,
        *,
        include_payloads: bool = False,
        page_size: int = PAGE_SIZE,
    ) -> AsyncIterator[Job]:
        """All jobs by id."""
        async for page in pages_of(
            lambda token: self.list_page(
                where, page_size=page_size, page_token=token, include_payloads=include_payloads
            )
        ):
            for job in page.jobs:
                yield job

    async def explain(self, id_: int) -> job_admin_service_pb2.ExplainJobResponse:
        """Why a job is not running, the first obstacle first. Raises JobNotFound."""
        request = job_admin_service_pb2.ExplainJobRequest(id=id_)
        return await self._link().read(self._stub.ExplainJob, request)

    async def promote(
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
        return await self._link().write(self._stub.PromoteJobs, request)

    async def cancel(
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
        return await self._link().write(self._stub.CancelJobs, request)

    async def retry(
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
        return await self._link().write(self._stub.RetryJobs, request)

    async def delete(
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
        return await self._link().write(self._stub.DeleteJobs, request)
