"""What becomes of jobs, in short words."""

from __future__ import annotations

from typing import NamedTuple

from jobline_server.engine.commands import FailItem, Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, FailAction, JobError, JobState
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit, Selection
from jobline_server.storage.ended_store import EndedSpan
from tests.unit.runtime.commits.test_commits import a_pull


class Lease(NamedTuple):
    """A job in hand."""

    id: int
    delivery: int


async def leased(runtime: Runtime, queue: str = "mail") -> Lease:
    await runtime.pushes.push(Push(queue, DEFAULT_OPTIONS, payloads=Payloads.of([b"x"])))
    pulled = await a_pull(runtime, queue)
    for run in pulled.runs:
        return Lease(run.first_id, run.delivery)
    return Lease(pulled.jobs[0].id, pulled.jobs[0].delivery)


async def ack(runtime: Runtime, lease: Lease) -> None:
    assert not await runtime.settle_calls.ack([lease.id], [lease.delivery], {})


async def die(runtime: Runtime, lease: Lease) -> None:
    error = JobError("Boom", "it broke")
    await runtime.settle_calls.fail([FailItem(lease.id, lease.delivery, error, FailAction.DEAD)])


async def completed(runtime: Runtime, queue: str = "mail") -> int:
    lease = await leased(runtime, queue)
    await ack(runtime, lease)
    return lease.id


async def retry(runtime: Runtime, job_id: int) -> None:
    await runtime.bulk.retry_jobs(Selection(ids=(job_id,)), dry_run=False, audit=Audit())


async def retry_and_die(runtime: Runtime, job_id: int) -> None:
    await retry(runtime, job_id)
    (job,) = (await a_pull(runtime)).jobs
    await die(runtime, Lease(job.id, job.delivery))


async def delete(runtime: Runtime, job_id: int) -> None:
    await runtime.bulk.delete_jobs(Selection(ids=(job_id,)), dry_run=False, audit=Audit())


async def delete_queue(runtime: Runtime, _job_id: int) -> None:
    await runtime.queues.delete_queue("mail", force=True, dry_run=False, audit=Audit())


async def make_stale(runtime: Runtime, job_id: int) -> None:
    async with runtime.ended.changing:
        assert (
            await runtime.ended.make_stale([EndedSpan("mail", JobState.COMPLETED, job_id, 1)]) == 1
        )
