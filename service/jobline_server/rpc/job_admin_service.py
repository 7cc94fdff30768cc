"""JobAdminService: the calls by which operators read and change jobs."""

from __future__ import annotations

from typing import Any

from jobline.v1 import job_admin_service_pb2 as pb
from jobline.v1 import job_pb2
from jobline_server.engine import limits
from jobline_server.engine.values import LogLevel
from jobline_server.rpc.convert import operations, selection
from jobline_server.rpc.convert.job_runs import runs_response
from jobline_server.rpc.convert.jobs import fill_job, fill_obstacle, fill_page
from jobline_server.rpc.convert.logs import log_response
from jobline_server.rpc.convert.page_tokens import cursor_of, token_of
from jobline_server.rpc.convert.updates import job_change
from jobline_server.rpc.guard import Context
from jobline_server.rpc.limits import RUNS_PAGE_SIZE_MAX
from jobline_server.rpc.validate import fields
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit, JobView


class JobAdminService:
    """Serves jobs from the runtime, and changes them through it."""

    def __init__(self, runtime: Runtime, *, payload_bytes_max: int) -> None:
        self._runtime = runtime
        self._payload_bytes_max = payload_bytes_max

    def _audit(self, request: Any, context: Context) -> Audit:
        return operations.audit(request, context, self._runtime.operations.new_id())

    async def GetJob(self, request: pb.GetJobRequest, _context: Context) -> pb.GetJobResponse:
        """Returns one job, by id or by key."""
        response = pb.GetJobResponse()
        fill_job(response.job, await self._job(request), with_payload=True)
        return response

    async def _job(self, request: pb.GetJobRequest) -> JobView:
        kind = request.WhichOneof("job")
        if kind == "id":
            return await self._runtime.jobs.get_job(request.id)
        if kind is None:
            raise fields.invalid("job", "an id or a key is required")
        jobs = self._runtime.jobs
        if kind == "unique_key":
            return await jobs.get_job_by_unique_key(*_key_of(request.unique_key, "unique_key"))
        return await jobs.get_job_by_key(*_key_of(request.job_key))

    async def ListJobs(
        self, request: pb.ListJobsRequest, _context: Context
    ) -> pb.ListJobsResponse | bytes:
        """Lists jobs by id, as messages or as runs."""
        if request.accepts_runs:
            return await self._list_runs(request)
        views, token = await self._runtime.jobs.list_jobs(
            selection.job_filter(request.filter),
            page_size=selection.page_size(request.page_size),
            page_token=cursor_of(request),
            include_payloads=request.include_payloads,
        )
        response = pb.ListJobsResponse()
        await fill_page(response, views, with_payload=request.include_payloads)
        response.next_page_token = token_of(request, token)
        return response

    async def _list_runs(self, request: pb.ListJobsRequest) -> bytes:
        page, token = await self._runtime.jobs.list_runs(
            selection.job_filter(request.filter),
            page_size=selection.page_size(request.page_size, RUNS_PAGE_SIZE_MAX),
            page_token=cursor_of(request),
            include_payloads=request.include_payloads,
        )
        token = token_of(request, token)
        return await runs_response(page, token, with_payloads=request.include_payloads)

    async def GetJobLogs(
        self, request: pb.GetJobLogsRequest, _context: Context
    ) -> pb.GetJobLogsResponse:
        """Returns the log of a job."""
        if not request.id:
            raise fields.invalid("id", "is required")
        fields.enum_member(request.min_level, "min_level", LogLevel)
        return log_response(await self._runtime.jobs.get_job(request.id), request)

    async def ExplainJob(
        self, request: pb.ExplainJobRequest, _context: Context
    ) -> pb.ExplainJobResponse:
        """Explains why a job is not running."""
        if not request.id:
            raise fields.invalid("id", "is required")
        state, obstacles = await self._runtime.explainer.explain_job(request.id)
        response = pb.ExplainJobResponse(state=job_pb2.JobState.ValueType(state))
        for obstacle in obstacles:
            fill_obstacle(response.obstacles.add(), obstacle)
        return response

    async def PromoteJobs(
        self, request: pb.PromoteJobsRequest, context: Context
    ) -> pb.PromoteJobsResponse:
        """Makes SCHEDULED jobs READY."""
        done = await self._runtime.bulk.promote_jobs(
            selection.selection(request.jobs),
            dry_run=request.dry_run,
            audit=self._audit(request, context),
        )
        return pb.PromoteJobsResponse(
            count=done.count,
            operation_id=done.operation_id,
            skipped_ids=done.skipped_ids,
            not_found_ids=done.not_found_ids,
        )

    async def UpdateJob(
        self, request: pb.UpdateJobRequest, context: Context
    ) -> pb.UpdateJobResponse:
        """Changes a job that waits."""
        change = job_change(request, self._payload_bytes_max)
        audit = self._audit(request, context)
        response = pb.UpdateJobResponse(operation_id=audit.operation_id)
        view = await self._runtime.updates.update_job(request.id, change, audit)
        fill_job(response.job, view, with_payload=True)
        return response

    async def ForgetKey(
        self, request: pb.ForgetKeyRequest, context: Context
    ) -> pb.ForgetKeyResponse:
        """Forgets a key."""
        audit = self._audit(request, context)
        kind, updates = request.WhichOneof("key"), self._runtime.updates
        if kind is None:
            raise fields.invalid("key", "a key is required")
        if kind == "unique_key":
            key = _key_of(request.unique_key, kind)
            job_id = await updates.forget_unique_key(*key, audit)
        else:
            job_id = await updates.forget_key(*_key_of(request.job_key), audit)
        return pb.ForgetKeyResponse(job_id=job_id, operation_id=audit.operation_id)

    async def CancelJobs(
        self, request: pb.CancelJobsRequest, context: Context
    ) -> pb.CancelJobsResponse:
        """Cancels jobs."""
        done = await self._runtime.bulk.cancel_jobs(
            selection.selection(request.jobs),
            below=request.below,
            dry_run=request.dry_run,
            audit=self._audit(request, context),
        )
        return pb.CancelJobsResponse(
            count=done.count,
            operation_id=done.operation_id,
            requested=done.requested,
            skipped_ids=done.skipped_ids,
            not_found_ids=done.not_found_ids,
        )

    async def RetryJobs(
        self, request: pb.RetryJobsRequest, context: Context
    ) -> pb.RetryJobsResponse:
        """Retries ended jobs: they become READY again."""
        done = await self._runtime.bulk.retry_jobs(
            selection.selection(request.jobs),
            dry_run=request.dry_run,
            audit=self._audit(request, context),
        )
        return pb.RetryJobsResponse(
            count=done.count,
            operation_id=done.operation_id,
            skipped_ids=done.skipped_ids,
            not_found_ids=done.not_found_ids,
        )

    async def DeleteJobs(
        self, request: pb.DeleteJobsRequest, context: Context
    ) -> pb.DeleteJobsResponse:
        """Deletes jobs that are waiting or ended."""
        done = await self._runtime.bulk.delete_jobs(
            selection.selection(request.jobs),
            dry_run=request.dry_run,
            audit=self._audit(request, context),
        )
        return pb.DeleteJobsResponse(
            count=done.count,
            operation_id=done.operation_id,
            skipped_ids=done.skipped_ids,
            not_found_ids=done.not_found_ids,
        )


def _key_of(message: pb.JobKey, field: str = "job_key") -> tuple[str, str]:
    """Returns a queue and a key of one of its jobs; both kinds of keys have the same limit."""
    queue = fields.queue_name(message.queue, f"{field}.queue")
    key = fields.key(message.key, f"{field}.key", limits.JOB_KEY_BYTES_MAX)
    if not key:
        raise fields.invalid(f"{field}.key", "is required")
    return queue, key
