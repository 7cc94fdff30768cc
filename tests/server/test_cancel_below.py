"""`CancelJobs` with `below`: what cancelled jobs waited for goes with them."""

from __future__ import annotations

import pytest
from grpc import aio

from jobline.v1 import job_admin_service_pb2, job_pb2
from tests.server.test_flows import BLOCKED, QUEUES, READY, Flows, job

ACTIVE, CANCELLED = job_pb2.JOB_STATE_ACTIVE, job_pb2.JOB_STATE_CANCELLED


@pytest.fixture
def calls(channel: aio.Channel) -> Flows:
    return Flows(channel)


async def cancel(
    calls: Flows, *ids: int, queue: str = "", dry_run: bool = False, below: bool = True
) -> job_admin_service_pb2.CancelJobsResponse:
    request = job_admin_service_pb2.CancelJobsRequest(dry_run=dry_run, below=below)
    if queue:
        request.jobs.filter.queue = queue
    else:
        request.jobs.ids.extend(ids)
    return await calls.admin.CancelJobs(request)


async def states(calls: Flows, ids: list[int]) -> list[int]:
    found = [await calls.admin.GetJob(job_admin_service_pb2.GetJobRequest(id=one)) for one in ids]
    return [one.job.state for one in found]


async def test_a_tree_over_shards_is_cancelled_whole(calls: Flows) -> None:
    """By the id of its root, and a dry run counts the same."""
    leaves = [job(queue) for queue in QUEUES]
    left, right = job("left", *range(6)), job("right", *range(6, 12))
    ids = await calls.push(*leaves, left, right, job("root", 12, 13))
    dry = await cancel(calls, ids[-1], dry_run=True)
    assert (dry.count, dry.requested, [*dry.skipped_ids]) == (15, 0, [])
    assert CANCELLED not in await states(calls, ids)
    done = await cancel(calls, ids[-1])
    assert (done.count, [*done.skipped_ids]) == (15, [])
    assert await states(calls, ids) == [CANCELLED] * 15


async def test_children_go_on_unless_it_is_asked_for(calls: Flows) -> None:
    ids = await calls.push(job("leaf"), job("root", 0))
    done = await cancel(calls, ids[1], below=False)
    assert done.count == 1
    assert await states(calls, ids) == [READY, CANCELLED]


@pytest.mark.parametrize("dry_run", [True, False])
async def test_one_that_another_waits_for_goes_on_until_that_is_cancelled(
    calls: Flows, dry_run: bool
) -> None:
    """Also what is below it. If both are cancelled by one call, it goes as well."""
    jobs = [job("deep"), job("shared", 0), job("alone"), job("one", 1, 2), job("two", 1)]
    ids = await calls.push(*jobs)
    assert (await cancel(calls, ids[3], dry_run=dry_run)).count == 2
    if not dry_run:
        assert await states(calls, ids) == [READY, BLOCKED, CANCELLED, CANCELLED, BLOCKED]
    both = await cancel(calls, *ids[3:], dry_run=dry_run)
    assert both.count == (5 if dry_run else 3)
    assert list(both.skipped_ids) == ([] if dry_run else [ids[3]])


async def test_one_that_has_begun_goes_on(calls: Flows) -> None:
    """Nor is it asked to stop."""
    ids = await calls.push(job("busy"), job("calm"), job("root", 0, 1))
    await calls.pull("busy")
    done = await cancel(calls, queue="root")
    assert (done.count, done.requested) == (2, 0)
    assert await states(calls, ids) == [ACTIVE, CANCELLED, CANCELLED]
