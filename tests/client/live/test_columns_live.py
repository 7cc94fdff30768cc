"""What jobs have of their own travels in columns beside their payloads: headers and job keys."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import grpc
import pytest
from google.rpc import error_details_pb2

from jobline import (
    IdempotencyMismatch,
    InvalidArgument,
    JobOptions,
    KeysFull,
    Middleware,
    NewJob,
    PushMiddleware,
    PushOutcome,
    Worker,
)
from jobline.v1 import job_service_pb2 as pb
from tests.client.live.either import connected
from tests.client.live.tiny_store import COMPLETED
from tests.client.live.working import working
from tests.client.pure.test_errors import details, info


class Traces(Middleware):
    """Notes the trace and the key of each job, as a middleware for tracing takes up the trace."""

    def __init__(self):
        self.seen = {}

    def _note(self, contexts):
        for context in contexts:
            self.seen[context.job.payload] = (context.headers, context.job_key)

    async def around(self, contexts, call_next):
        self._note(contexts)
        return await call_next()

    def around_plain(self, contexts, call_next):
        self._note(contexts)
        return call_next()


def add_handler(worker, how):
    if how == "async":

        @worker.handler("q")
        async def handle(payload):
            return None
    elif how == "plain":

        @worker.handler("q")
        def handle_plain(payload):
            return None
    else:

        @worker.batch_handler("q", size=3, wait=5)
        def handle_all(items):
            return [None] * len(items)


@pytest.mark.parametrize("how", ["async", "plain", "batch"])
async def test_a_worker_finds_what_each_job_of_a_run_has_of_its_own(tiny, how):
    """Middleware reads headers and key of each job, however its handler is called."""
    request = pb.PushRequest(queue="q", payloads=[b"0", b"1", b"2"], job_keys=["k", "", "l"])
    request.options.headers["tenant"] = "t"
    request.header_columns.add(key="trace", values=["a", "b", ""])
    tiny.store.push(request)
    traces = Traces()
    worker = Worker(tiny.address, middleware=[traces])
    add_handler(worker, how)
    async with working(worker):
        await tiny.until(lambda: len(tiny.jobs(COMPLETED)) == 3)
    assert traces.seen == {
        b"0": ({"tenant": "t", "trace": "a"}, "k"),
        b"1": ({"tenant": "t", "trace": "b"}, ""),
        b"2": ({"tenant": "t"}, "l"),
    }


# ---------------------------------------------------------------------- pushes


async def behind_a_call(tiny, either, pushes):
    """Pushes that are made while another one flies, and so share the next call."""
    gate = tiny.hold("Push")
    before = tiny.calls["Push"]
    first = asyncio.create_task(either("push", "q", b"first"))
    await tiny.until(lambda: tiny.calls["Push"] > before)
    others = []
    for number, how in enumerate(pushes):
        others.append(asyncio.create_task(either("push", "q", b"%d" % number, **how)))
        await either.gathered(number + 2)
    gate.set()
    await first
    return await asyncio.gather(*others, return_exceptions=True)


async def test_pushes_that_differ_in_headers_and_key_share_a_call(tiny, either):
    """Each job arrives with its own, and those with a key beside those without one."""
    told = await behind_a_call(
        tiny,
        either,
        [
            {"headers": {"trace": "a", "by": "me"}},
            {"headers": {"trace": "b", "by": "me"}, "job_key": "k"},
            {"options": JobOptions(headers={"by": "me"})},
        ],
    )
    request = tiny.pushes[-1]
    assert len(tiny.pushes) == 2
    assert (len(request.payloads), list(request.job_keys)) == (3, ["", "k", ""])
    jobs = [tiny.store.jobs[pushed.id] for pushed in told]
    assert [(dict(job.options.headers), job.job_key) for job in jobs] == [
        ({"trace": "a", "by": "me"}, ""),
        ({"trace": "b", "by": "me"}, "k"),
        ({"by": "me"}, ""),
    ]


async def test_one_call_tells_each_caller_of_its_own_key(tiny, either):
    """A duplicate within the call and of an earlier one, and one that does not match."""
    (earlier,) = await behind_a_call(tiny, either, [{"job_key": "k"}])
    plain, same, other, first, again = await behind_a_call(
        tiny, either, [{}, {"job_key": "l"}, {"job_key": "k"}, {"job_key": "m"}, {}]
    )
    assert {one.outcome for one in (plain, same, first, again)} == {PushOutcome.CREATED}
    assert isinstance(other, IdempotencyMismatch)
    assert "'k'" in str(other)
    repeated = await either("push", "q", b"0", job_key="k")
    assert (repeated.id, repeated.outcome) == (earlier.id, PushOutcome.DUPLICATE)


async def test_a_lost_answer_for_jobs_with_and_without_keys_stores_nothing_twice(tiny, either):
    """The call is repeated under its number, with the same columns."""
    gate = tiny.hold("Push")
    tiny.lose_answers("Push", 3)
    pushes = asyncio.gather(
        *(either("push", "q", b"x", headers={"n": str(number)}) for number in range(4)),
        either("push", "q", b"x", job_key="k", headers={"n": "k"}),
    )
    await tiny.until(lambda: tiny.calls["Push"])
    await either.gathered(5)
    gate.set()
    told = await pushes
    assert len(tiny.jobs()) == 5
    assert sorted(pushed.id for pushed in told) == [1, 2, 3, 4, 5]
    headers = [tiny.store.jobs[pushed.id].options.headers["n"] for pushed in told]
    assert headers == ["0", "1", "2", "3", "k"]


async def test_a_limit_of_keys_refuses_only_those_with_one(tiny, either):
    """As if they had not shared a call."""
    full = (grpc.StatusCode.RESOURCE_EXHAUSTED, "full", details(info("KEYS_FULL")))
    tiny.accept("Push")  # the call that they wait behind
    tiny.refuse("Push", *full)
    tiny.accept("Push")
    tiny.refuse("Push", *full)
    plain, keyed, other = await behind_a_call(tiny, either, [{}, {"job_key": "k"}, {}])
    assert isinstance(keyed, KeysFull)
    assert [tiny.store.jobs[one.id].payload for one in (plain, other)] == [b"0", b"2"]
    assert tiny.calls["Push"] == 4


class Trace(PushMiddleware):
    """Gives each job a trace of its own."""

    def _traced(self, jobs):
        return [
            replace(
                job, options=job.options.merged(JobOptions(headers={"of": job.payload.decode()}))
            )
            for job in jobs
        ]

    async def around(self, jobs, call_next):
        return await call_next(self._traced(jobs))

    def around_plain(self, jobs, call_next):
        return call_next(self._traced(jobs))


@pytest.mark.parametrize("kind", ["blocking", "async"])
async def test_middleware_that_traces_does_not_part_pushes(tiny, kind):
    """Neither single ones nor those of one call."""
    async with connected(kind, tiny.address, middleware=[Trace()]) as client:
        told = await behind_a_call(tiny, client, [{}, {"job_key": "k"}, {}])
        many = await client("push_many", "q", [b"4", NewJob(b"5", job_key="l")])
        lot = await client("push_payloads", "q", [b"6", b"7"])
    assert [len(request.payloads) for request in tiny.pushes] == [1, 3, 2, 2]
    for id_ in [one.id for one in (*told, *many)] + list(lot.ids):
        job = tiny.store.jobs[id_]
        assert job.options.headers["of"] == job.payload.decode()


def bad_field(field):
    violation = error_details_pb2.BadRequest.FieldViolation(field=field, description="bad")
    return details(error_details_pb2.BadRequest(field_violations=[violation]), code=3)


async def test_a_refusal_of_one_of_many_jobs_names_it_by_its_index(tiny, either):
    """A column is refused by its own name, so the call is made again in rows."""
    for field in ("job_keys[1]", "jobs[1].job_key"):
        tiny.refuse("Push", grpc.StatusCode.INVALID_ARGUMENT, metadata=bad_field(field))
    with pytest.raises(InvalidArgument) as refused:
        await either("push_many", "q", [b"1", NewJob(b"2", job_key="bad")])
    assert refused.value.field == "jobs[1].job_key"
    assert (tiny.calls["Push"], tiny.jobs()) == (2, [])
