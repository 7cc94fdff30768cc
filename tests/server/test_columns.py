"""Headers and keys beside payloads, from a push to whoever takes the jobs or looks at them."""

from __future__ import annotations

from typing import Any

import pytest
from grpc import aio

from jobline.v1 import job_admin_service_pb2, job_service_pb2
from jobline.v1.job_admin_service_pb2_grpc import JobAdminServiceStub
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from tests.server.streaming import next_with, opened
from tests.server.world import make

PULL = {"queues": [{"queue": "q"}], "max_jobs": 2}


async def pushed(channel: aio.Channel, **rest: Any) -> Any:
    """Four jobs with headers and keys of their own."""
    stub: Any = JobServiceStub(channel)
    return await stub.Push(
        make(
            job_service_pb2.PushRequest,
            queue="q",
            options={"headers": {"a": "shared", "b": "shared"}},
            payloads=[b"0", b"1", b"2", b"3"],
            header_columns=[
                {"key": "a", "values": ["0", "", "2", "drei"]},
                {"key": "trace", "values": ["t0", "t1", "t2", "é"]},
            ],
            job_keys=["k0", "", "k2", ""],
            **rest,
        )
    )


HEADERS = [
    {"a": "0", "b": "shared", "trace": "t0"},
    {"a": "shared", "b": "shared", "trace": "t1"},
    {"a": "2", "b": "shared", "trace": "t2"},
    {"a": "drei", "b": "shared", "trace": "é"},
]


def told(run: Any) -> tuple[Any, ...]:
    """What a run says of its jobs."""
    columns = {column.key: list(column.values) for column in run.header_columns}
    return list(run.payloads), columns, list(run.job_keys), dict(run.options.headers)


async def test_a_run_has_its_part_of_the_columns(channel: aio.Channel) -> None:
    """Cut where the caller takes no more."""
    stub: Any = JobServiceStub(channel)
    await pushed(channel)

    pull = make(job_service_pb2.PullRequest, accepts_runs=True, **PULL)
    replies = [await stub.Pull(pull), await stub.Pull(pull)]

    shared = {"a": "shared", "b": "shared"}
    assert [told(run) for reply in replies for run in reply.runs] == [
        ([b"0", b"1"], {"a": ["0", ""], "trace": ["t0", "t1"]}, ["k0", ""], shared),
        ([b"2", b"3"], {"a": ["2", "drei"], "trace": ["t2", "é"]}, ["k2", ""], shared),
    ]


async def test_a_stream_hands_out_columns(channel: aio.Channel) -> None:
    """As a pull does."""
    stream = await opened(
        JobServiceStub(channel), open={"queues": [{"queue": "q"}], "accepts_runs": True}
    )
    await pushed(channel)
    (run,) = (await next_with(stream, "runs")).runs
    assert told(run)[1:3] == (
        {"a": ["0", "", "2", "drei"], "trace": ["t0", "t1", "t2", "é"]},
        ["k0", "", "k2", ""],
    )
    await stream.done_writing()


async def test_callers_that_take_no_runs_get_all_in_the_jobs(channel: aio.Channel) -> None:
    """Own headers before shared ones."""
    stub: Any = JobServiceStub(channel)
    await pushed(channel)

    jobs: list[Any] = []
    for _ in range(2):
        jobs += (await stub.Pull(make(job_service_pb2.PullRequest, **PULL))).jobs

    assert [dict(job.options.headers) for job in jobs] == HEADERS
    assert [job.job_key for job in jobs] == ["k0", "", "k2", ""]
    assert [job.payload for job in jobs] == [b"0", b"1", b"2", b"3"]


async def test_a_job_that_failed_keeps_what_it_has_of_its_own(channel: aio.Channel) -> None:
    """It leaves its lot, and comes as a job of its own; so do its neighbours in a list."""
    stub: Any = JobServiceStub(channel)
    admin: Any = JobAdminServiceStub(channel)
    first_id = (await pushed(channel)).first_id
    pull = make(job_service_pb2.PullRequest, **PULL)
    lost = (await stub.Pull(pull)).jobs[0]
    item = {"id": lost.id, "delivery": lost.delivery, "error": {"type": "E"}, "retry_after": {}}
    await stub.Fail(make(job_service_pb2.FailRequest, items=[item]))
    await stub.Pull(make(job_service_pb2.PullRequest, **PULL))

    (again,) = (await stub.Pull(pull)).jobs

    assert (again.id, again.attempt, again.job_key) == (first_id, 2, "k0")
    assert dict(again.options.headers) == HEADERS[0]
    listed = (await admin.ListJobs(job_admin_service_pb2.ListJobsRequest())).jobs
    assert [dict(job.options.headers) for job in listed] == HEADERS
    assert [job.job_key for job in listed] == ["k0", "", "k2", ""]


async def test_ended_jobs_show_what_they_had_of_their_own(channel: aio.Channel) -> None:
    """As they were written with their run."""
    stub: Any = JobServiceStub(channel)
    admin: Any = JobAdminServiceStub(channel)
    first_id = (await pushed(channel)).first_id
    pull = {**PULL, "max_jobs": 4, "accepts_runs": True}
    (run,) = (await stub.Pull(make(job_service_pb2.PullRequest, **pull))).runs
    ids = list(range(first_id, first_id + 4))
    await stub.Ack(job_service_pb2.AckRequest(ids=ids, deliveries=[run.delivery] * 4))

    replies = [await admin.GetJob(job_admin_service_pb2.GetJobRequest(id=one)) for one in ids]

    jobs = [reply.job for reply in replies]

    assert [dict(job.options.headers) for job in jobs] == HEADERS
    assert [job.job_key for job in jobs] == ["k0", "", "k2", ""]


@pytest.mark.parametrize("rows", [[], [{"text": "row"}]], ids=["alone", "beside jobs"])
async def test_known_keys_are_told_by_index(channel: aio.Channel, rows: list[Any]) -> None:
    """Counted after the jobs; the same call again gets the same answer."""
    first = await pushed(channel)
    producer = {"id": bytes(16), "sequence": 1}

    again = await pushed(channel, jobs=rows, producer=producer)

    duplicate = job_service_pb2.PUSH_OUTCOME_DUPLICATE
    assert [(one.index, one.outcome, one.id) for one in again.exceptions] == [
        (len(rows), duplicate, first.first_id),
        (len(rows) + 2, duplicate, first.first_id + 2),
    ]
    assert again.count == 2 + len(rows)
    assert await pushed(channel, jobs=rows, producer=producer) == again
