"""What single jobs have of their own, on the real server: both transports, both clients."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import contextmanager
from typing import Any

import pytest

from jobline import (
    IdempotencyMismatch,
    InvalidArgument,
    JobOptions,
    JobState,
    Middleware,
    NewJob,
    PushMiddleware,
    PushOutcome,
    Worker,
)
from jobline._push.calls import id_of
from jobline.errors import Unavailable
from tests.client.live.either import Either, connected
from tests.client.live.working import working

COUNT = 60
CREATED, DUPLICATE = PushOutcome.CREATED, PushOutcome.DUPLICATE


@pytest.fixture
def queue():
    """A queue of this test's own."""
    return f"q-{uuid.uuid4().hex[:12]}"


@contextmanager
def watched(client: Either, *, lose: int = 0):
    """The requests of the single pushes of a client; the first answers are lost."""
    pusher: Any = client.client._pushers.current()
    call = pusher._call
    requests: list[Any] = []

    def lost():
        if len(requests) <= lose:
            raise Unavailable("the answer was lost")

    async def call_async(request):
        requests.append(request)
        response = await call(request)
        lost()
        return response

    def call_blocking(request):
        requests.append(request)
        future = call(request)
        if len(requests) <= lose:
            future.result()
        lost()
        return future

    pusher._call = call_async if client.is_async else call_blocking
    try:
        yield requests
    finally:
        pusher._call = call


async def push_all(client, queue, pushes):
    """Pushes at the same time; errors are answers too."""
    return await asyncio.gather(
        *(client("push", queue, payload, **how) for payload, how in pushes),
        return_exceptions=True,
    )


def trace(number):
    return {"trace": f"00-{number:032x}", "tenant": "t"}


async def test_pushes_with_a_trace_of_their_own_share_calls(client, queue):
    """Each job is handed out with its own headers, and shows them to operators."""
    with watched(client) as requests:
        told = await push_all(
            client, queue, [(b"%d" % n, {"headers": trace(n)}) for n in range(COUNT)]
        )
    assert len(requests) < COUNT / 4
    assert {one.outcome for one in told} == {CREATED}
    jobs = {job.id: job for job in await client("pull", queue, max_jobs=100)}
    for number, pushed in enumerate(told):
        job = jobs[pushed.id]
        assert (job.payload, job.headers, job.job_key) == (b"%d" % number, trace(number), "")
    shown = await client("jobs.get", told[7].id)
    assert shown.options == JobOptions(headers=trace(7))
    (found,) = await client("jobs.list", queue=queue, headers={"trace": trace(9)["trace"]})
    assert found.id == told[9].id


async def test_a_retry_and_a_single_job_have_the_headers_that_they_were_pushed_with(client, queue):
    """Also where a job is handed out by itself."""
    many = [NewJob(b"%d" % n, headers=trace(n), job_key=f"k{n}") for n in range(5)]
    told = await client("push_many", queue, many)
    jobs = await client("pull", queue, max_jobs=5)
    await client("fail", jobs[2], "again", retry_after=0)
    await client("release", jobs[4])
    again = {job.id: job for job in await client("pull", queue, max_jobs=5, wait=5)}
    if len(again) < 2:
        again |= {job.id: job for job in await client("pull", queue, max_jobs=5, wait=5)}
    for number in (2, 4):
        job = again[told[number].id]
        assert (job.headers, job.job_key) == (trace(number), f"k{number}")


async def test_jobs_with_keys_and_without_share_a_call(client, queue):
    """A key that comes twice makes one job, within a call and over calls; the others are stored."""
    pushes = [
        (b"%d" % (n % 20), {"job_key": f"k{n % 20}", "headers": trace(n)})
        if n % 2
        else (b"plain", {"headers": trace(n)})
        for n in range(COUNT)
    ]
    with watched(client) as requests:
        told = await push_all(client, queue, pushes)
    assert len(requests) < COUNT / 4
    ids: dict[str, set[int]] = {}
    for (_, how), pushed in zip(pushes, told, strict=True):
        ids.setdefault(how.get("job_key", ""), set()).add(pushed.id)
    assert {len(of_key) for key, of_key in ids.items() if key} == {1}
    assert len(ids[""]) == COUNT / 2
    outcomes = [pushed.outcome for pushed in told]
    assert (outcomes.count(CREATED), outcomes.count(DUPLICATE)) == (COUNT / 2 + 10, COUNT / 2 - 10)
    again = await push_all(client, queue, [push for push in pushes if "job_key" in push[1]])
    assert {pushed.outcome for pushed in again} == {DUPLICATE}
    assert (await client("queues.get", queue)).counts.ready == COUNT / 2 + 10


async def test_a_key_that_does_not_match_is_the_fault_of_its_caller(client, queue):
    """The other pushes of the call are stored."""
    await client("push", queue, b"first", job_key="k")
    told = await push_all(
        client,
        queue,
        [
            (b"a", {}),
            (b"first", {"job_key": "k"}),
            (b"other", {"job_key": "k"}),
            (b"b", {"job_key": "l"}),
            (b"c", {"job_key": "x" * 257}),
            (b"d", {"headers": {"h": "v" * 9_000}}),
            (b"e", {"headers": {"h": "v"}}),
        ],
    )
    outcomes = [getattr(one, "outcome", type(one)) for one in told]
    refused = [IdempotencyMismatch, CREATED, InvalidArgument, InvalidArgument, CREATED]
    assert outcomes == [CREATED, DUPLICATE, *refused]
    assert [told[index].field for index in (4, 5)] == ["jobs[0].job_key", "options.headers"]


@pytest.mark.parametrize("lose", [1, 2])
async def test_a_lost_answer_stores_nothing_twice(client, queue, lose):
    """The call is repeated with the same columns under the same number."""
    pushes = [
        (b"%d" % n, {"headers": trace(n)} | ({"job_key": f"k{n}"} if n % 3 else {}))
        for n in range(COUNT)
    ]
    with watched(client, lose=lose) as requests:
        told = await push_all(client, queue, pushes)
    numbers = [id_of(request) for request in requests]
    assert len(set(numbers)) < len(numbers)
    assert len({pushed.id for pushed in told}) == COUNT
    assert (await client("queues.get", queue)).counts.ready == COUNT
    jobs = {job.id: job for job in await client("pull", queue, max_jobs=100)}
    for number, pushed in enumerate(told):
        assert jobs[pushed.id].headers == trace(number)


async def test_a_refusal_of_one_of_many_jobs_names_it(client, queue):
    """By its index and its field, as if there were no columns; none of them is stored."""
    await client("push", queue, b"1", job_key="known")
    for bad, kind, field in (
        (NewJob(b"x", job_key="known"), IdempotencyMismatch, "jobs[1].job_key"),
        (NewJob(b"x", job_key="k" * 257), InvalidArgument, "jobs[1].job_key"),
        (NewJob(b"x", headers={"h": "v" * 9_000}), InvalidArgument, "jobs[1].options.headers"),
    ):
        with pytest.raises(kind) as refused:
            await client("push_many", queue, [NewJob(b"0", headers={"h": "1"}), bad])
        assert refused.value.field == field
    assert (await client("queues.get", queue)).counts.ready == 1


class Tracing(PushMiddleware):
    """Gives each job a trace, and takes it up where the job runs."""

    def _traced(self, jobs):
        return [job.with_headers({"trace": job.payload.decode()}) for job in jobs]

    async def around(self, jobs, call_next):
        return await call_next(self._traced(jobs))

    def around_plain(self, jobs, call_next):
        return call_next(self._traced(jobs))


class TakeUp(Middleware):
    """Notes traces and keys."""

    def __init__(self):
        self.seen = {}

    async def around(self, contexts, call_next):
        for context in contexts:
            self.seen[context.id] = (context.headers["trace"], context.job_key)
        return await call_next()


@pytest.mark.parametrize("kind", ["blocking", "async"])
async def test_traces_go_from_push_to_handler(server, queue, kind):
    """Through the middleware of both sides, for each way to push."""
    taken = TakeUp()
    worker = Worker(server.address, middleware=[taken], concurrency=8)
    done = asyncio.Event()

    @worker.handler(queue)
    async def handle(payload):
        if len(taken.seen) == COUNT + 4:
            done.set()

    async with connected(kind, server.address, middleware=[Tracing()]) as client:
        pushes = [(b"%d" % n, {"job_key": f"k{n}"} if n % 2 else {}) for n in range(COUNT)]
        told = await push_all(client, queue, pushes)
        many = await client("push_many", queue, [b"m", NewJob(b"n", job_key="kn")])
        lot = await client("push_payloads", queue, [b"o", b"p"])
        async with working(worker):
            async with asyncio.timeout(20):
                await done.wait()
        ends = await client("wait", *(one.id for one in told), timeout=10)
    assert {end.state for end in ends} == {JobState.COMPLETED}
    expected = {
        one.id: (payload.decode(), how.get("job_key", ""))
        for one, (payload, how) in zip(told, pushes, strict=True)
    }
    expected |= {many[0].id: ("m", ""), many[1].id: ("n", "kn")}
    expected |= dict(zip(lot.ids, [("o", ""), ("p", "")], strict=True))
    assert taken.seen == expected
