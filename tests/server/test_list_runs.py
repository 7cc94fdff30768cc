"""`ListJobs` with `accepts_runs`: the same jobs as without, in columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from grpc import aio

from jobline.v1 import job_admin_service_pb2 as admin
from jobline.v1 import job_pb2
from jobline.v1 import job_service_pb2 as jobs
from jobline.v1.job_admin_service_pb2_grpc import JobAdminServiceStub
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.testing import RunningServer
from tests.server import world
from tests.server.http_calls import call_json, client_of
from tests.server.world import make

QUEUE = world.QUEUE
SIZES = [b"x" * size for size in range(20)]


def spread(run: admin.JobRun) -> Iterator[job_pb2.Job]:
    """Yields the jobs of a run as messages of their own, by what job_admin_service.proto says."""
    for at in range(run.count):
        job = job_pb2.Job()
        job.CopyFrom(run.shared)
        job.id = run.first_id + at
        if run.payloads:
            job.payload = run.payloads[at]
            job.payload_bytes = len(job.payload)
        if run.payload_bytes:
            job.payload_bytes = run.payload_bytes[at]
        if run.ended_ms:
            job.ended_at.FromMilliseconds(run.ended_ms[at])
        if run.lease_until_ms:
            job.lease_until.FromMilliseconds(run.lease_until_ms[at])
        for column in run.header_columns:
            if column.values[at]:
                job.options.headers[column.key] = column.values[at]
        if run.job_keys:
            job.job_key = run.job_keys[at]
        yield job


async def pages(channel: aio.Channel, **asked: Any) -> list[admin.ListJobsResponse]:
    """All pages of a list."""
    request = make(admin.ListJobsRequest, **asked)
    found: list[admin.ListJobsResponse] = []
    while not found or request.page_token:
        found.append(await JobAdminServiceStub(channel).ListJobs(request))
        request.page_token = found[-1].next_page_token
    return found


async def listed(channel: aio.Channel, **asked: Any) -> list[bytes]:
    """All jobs of a list, in its order, as bytes; runs are spread."""
    found: list[job_pb2.Job] = []
    for page in await pages(channel, **asked):
        of_page = [*page.jobs, *(job for run in page.runs for job in spread(run))]
        found += sorted(of_page, key=lambda job: job.id)
    for job in found:
        # Shown from two clocks, so its last millisecond may differ between two looks.
        job.ClearField("lease_until")
    return [job.SerializeToString(deterministic=True) for job in found]


async def fill(channel: aio.Channel) -> None:
    """Jobs one by one in every state, and lots that wait, are leased and have ended."""
    stub = JobServiceStub(channel)
    await world.fill(channel)
    columns = [{"key": "trace", "values": [f"t{at}" if at % 3 else "" for at in range(20)]}]
    own = {"header_columns": columns, "job_keys": [f"k-{at}" for at in range(20)]}
    options = {"name": "send", "headers": {"trace": "shared", "b": "c"}, "tags": ["t"]}
    push = make(jobs.PushRequest, queue=QUEUE, options=options, payloads=SIZES, **own)
    await stub.Push(push)
    await stub.Push(make(jobs.PushRequest, queue=QUEUE, payloads=[b"even"] * 20))
    pull = make(jobs.PullRequest, queues=[{"queue": QUEUE}], max_jobs=35, accepts_runs=True)
    for run in (await stub.Pull(pull)).runs:
        some = [at for at in range(len(run.payloads)) if at % 5]
        ids = [run.first_id + at for at in some]
        await stub.Ack(jobs.AckRequest(ids=ids, deliveries=[run.delivery] * len(ids)))


@pytest.mark.parametrize("include_payloads", [True, False])
@pytest.mark.parametrize("page_size", [1, 7, 1_000])
async def test_runs_hold_what_messages_hold(
    channel: aio.Channel, page_size: int, include_payloads: bool
) -> None:
    """Each job, and every field of it."""
    await fill(channel)
    asked = {"page_size": page_size, "include_payloads": include_payloads}
    rows = await listed(channel, **asked)
    assert await listed(channel, accepts_runs=True, **asked) == rows
    assert len(rows) == 45


async def test_what_a_run_says_for_all_it_does_not_say_for_each(channel: aio.Channel) -> None:
    """A lot that waits is one run, whose only column is that of payloads, if they are asked for."""
    await JobServiceStub(channel).Push(jobs.PushRequest(queue="mail", payloads=[b"even"] * 9))
    for include_payloads in (True, False):
        asked = {"accepts_runs": True, "include_payloads": include_payloads}
        (page,) = await pages(channel, **asked)
        (only,) = page.runs
        assert (only.count, only.shared.payload_bytes) == (9, 4)
        assert list(only.payloads) == ([b"even"] * 9 if include_payloads else [])
        own = (only.payload_bytes, only.ended_ms, only.header_columns, only.job_keys)
        assert not any(own)
        assert (only.shared.id, only.shared.payload) == (0, b"")


async def test_a_page_of_runs_has_ten_thousand_jobs(channel: aio.Channel) -> None:
    """As many as one push."""
    stub = JobServiceStub(channel)
    for _ in range(2):
        await stub.Push(jobs.PushRequest(queue="mail", payloads=[b"x"] * 10_000))
    found = await pages(channel, accepts_runs=True, page_size=10_000)
    assert [sum(run.count for run in page.runs) for page in found][:2] == [10_000] * 2


async def test_a_page_of_large_payloads_is_cut(channel: aio.Channel) -> None:
    """Many clients take messages of at most 4 MiB."""
    stub = JobServiceStub(channel)
    await stub.Push(jobs.PushRequest(queue="mail", payloads=[bytes(1 << 20)] * 8))
    asked = {"accepts_runs": True, "page_size": 100, "include_payloads": True}
    found = await pages(channel, **asked)
    assert max(page.ByteSize() for page in found) < 4 << 20
    assert sum(run.count for page in found for run in page.runs) == 8


async def test_without_accepts_runs_there_are_none(channel: aio.Channel) -> None:
    """Callers that do not know runs lose no job."""
    await fill(channel)
    assert not any(page.runs for page in await pages(channel))


async def test_runs_come_over_http_too(server: RunningServer, channel: aio.Channel) -> None:
    """In JSON, by the same names."""
    await JobServiceStub(channel).Push(jobs.PushRequest(queue="mail", payloads=[b"x"] * 5))
    async with client_of(server) as client:
        reply = await call_json(client, "JobAdminService/ListJobs", {"acceptsRuns": True})
    (run,) = reply["runs"]
    assert (run["count"], run["shared"]["state"]) == (5, "JOB_STATE_READY")
