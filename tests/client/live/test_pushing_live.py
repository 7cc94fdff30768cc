"""Pushes over a real socket: shared calls, lost answers, full buffers, closing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import grpc
import pytest

from jobline import (
    BufferFull,
    ClientClosed,
    IdempotencyMismatch,
    InvalidArgument,
    JobOptions,
    NewJob,
    OutcomeUnknown,
    PushMiddleware,
    PushOutcome,
    ResourceExhausted,
)
from jobline._push.calls import id_of
from jobline._push.producers import PushCalls
from tests.client.live.either import connected


async def test_pushes_made_at_the_same_time_share_a_call(tiny, either):
    """The first goes at once, those that come while it flies go together, in order."""
    gate = tiny.hold("Push")
    first = asyncio.create_task(either("push", "q", b"0"))
    await tiny.until(lambda: tiny.calls["Push"])
    others = [asyncio.create_task(either("push", "q", str(n).encode())) for n in range(1, 10)]
    await either.gathered(10)
    gate.set()
    pushed = [await first, *await asyncio.gather(*others)]
    assert [len(request.payloads) for request in tiny.pushes] == [1, 9]
    assert sorted(entry.id for entry in pushed) == list(range(1, 11))
    for entry, payload in zip(pushed, range(10), strict=True):
        assert tiny.store.jobs[entry.id].payload == str(payload).encode()


async def test_what_shares_nothing_flies_apart(tiny, either):
    """Another queue, other options: each has its own call."""
    await asyncio.gather(
        either("push", "q", b""),
        either("push", "r", b""),
        either("push", "q", b"", options=JobOptions(priority=1)),
        either("push", "q", b"", headers={"a": ""}),
    )
    assert len(tiny.pushes) == 4


async def test_a_lost_answer_stores_nothing_twice(tiny, either):
    """The push is repeated under its request id, or with its key."""
    tiny.lose_answers("Push", 2)
    pushed = await either("push", "q", b"one")
    assert (pushed.id, pushed.outcome) == (1, PushOutcome.CREATED)
    assert len({id_of(request) for request in tiny.pushes}) == 1
    tiny.lose_answers("Push")
    keyed = await either("push", "q", b"two", job_key="k")
    assert (keyed.id, keyed.outcome) == (2, PushOutcome.DUPLICATE)
    tiny.lose_answers("Push")
    many = await either("push_many", "q", [b"3", b"4"])
    assert [entry.id for entry in many] == [3, 4]
    tiny.lose_answers("Push")
    lot = await either("push_payloads", "q", [b"5", b"6"])
    assert list(lot.ids) == [5, 6]
    assert len(tiny.jobs()) == 6


@pytest.mark.parametrize("kind", ["blocking", "async"])
async def test_without_an_answer_the_outcome_is_unknown(tiny, kind):
    """After the client's time is over, and never as if it were refused."""
    async with connected(kind, tiny.address, timeout=2) as client:
        tiny.lose_answers("Push", 1_000)
        told: Any = await asyncio.gather(
            client("push", "q", b""),
            client("push_many", "q", [b""], request_id="mine"),
            return_exceptions=True,
        )
    one, many = told
    assert isinstance(one, OutcomeUnknown)
    assert isinstance(many, OutcomeUnknown)
    assert many.request_id == "mine"
    assert {one.request_id, "mine"} == {id_of(request) for request in tiny.pushes}


async def test_a_key_that_does_not_match_is_one_callers_error(tiny, either):
    """The others that travel with it are stored."""
    await either("push", "q", b"a", job_key="k1")
    gate = tiny.hold("Push")
    blocker = asyncio.create_task(either("push", "q", b"x", job_key="k0"))
    await tiny.until(lambda: tiny.calls["Push"] == 2)
    same = asyncio.create_task(either("push", "q", b"a", job_key="k1"))
    other = asyncio.create_task(either("push", "q", b"b", job_key="k1"))
    new = asyncio.create_task(either("push", "q", b"c", job_key="k2"))
    await either.gathered(4)
    gate.set()
    assert (await same).duplicate
    assert (await new).created
    with pytest.raises(IdempotencyMismatch, match="'k1'"):
        await other
    await blocker


async def test_a_key_that_is_empty_is_refused(tiny, either):
    """Whoever gives a key counts on it: without one the job may be stored twice."""
    for push in (
        either("push", "q", b"a", job_key=""),
        either("push_many", "q", [NewJob(b"a", job_key="k"), NewJob(b"b", job_key="")]),
        either("push_many", "q", [NewJob(b"a", job_key="")]),
    ):
        with pytest.raises(InvalidArgument, match="job_key: is empty"):
            await push
    assert not tiny.pushes


async def test_a_refusal_reaches_everybody_it_is_for(tiny, either):
    """Nothing of the batch was stored, and it is not tried again."""
    tiny.refuse("Push", grpc.StatusCode.RESOURCE_EXHAUSTED, "the queue is full")
    with pytest.raises(ResourceExhausted):
        await either("push", "q", b"")
    assert tiny.calls["Push"] == 1


@pytest.mark.parametrize("kind", ["blocking", "async"])
async def test_a_full_buffer_refuses_the_newest(tiny, kind):
    """What waits already is pushed."""
    async with connected(kind, tiny.address, buffer_jobs=3) as client:
        gate = tiny.hold("Push")
        waiting = [asyncio.create_task(client("push", "q", b"")) for _ in range(3)]
        await tiny.until(lambda: tiny.calls["Push"])
        await client.gathered(3)
        with pytest.raises(BufferFull):
            await client("push", "q", b"")
        gate.set()
        assert len(await asyncio.gather(*waiting)) == 3


async def test_close_waits_for_what_was_taken(tiny, either):
    """And takes nothing more; closing twice does no harm."""
    gate = tiny.hold("Push")
    push = asyncio.create_task(either("push", "q", b""))
    await tiny.until(lambda: tiny.calls["Push"])
    closing = asyncio.create_task(either("close"))
    await asyncio.sleep(0)
    assert not closing.done()
    gate.set()
    assert (await push).id == 1
    await closing
    await either("close")
    with pytest.raises(ClientClosed):
        await either("push", "q", b"")


@pytest.mark.parametrize("either", ["async"], indirect=True)
async def test_a_cancelled_push_that_has_not_left_is_withdrawn(tiny, either):
    """Nobody waits for it, and nobody gets it."""
    gate = tiny.hold("Push")
    first = asyncio.create_task(either("push", "q", b"first"))
    await tiny.until(lambda: tiny.calls["Push"])
    second = asyncio.create_task(either("push", "q", b"second"))
    await either.gathered(2)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    gate.set()
    await first
    await either("push", "q", b"third")
    assert [job.payload for job in tiny.jobs()] == [b"first", b"third"]


class Sign(PushMiddleware):
    """Gives each job a header, and counts what was pushed."""

    def __init__(self):
        self.pushed = 0

    def _signed(self, jobs):
        header = JobOptions(headers={"by": "me"})
        return [replace(job, options=job.options.merged(header)) for job in jobs]

    async def around(self, jobs, call_next):
        pushed = await call_next(self._signed(jobs))
        self.pushed += len(pushed)
        return pushed

    def around_plain(self, jobs, call_next):
        pushed = call_next(self._signed(jobs))
        self.pushed += len(pushed)
        return pushed


@pytest.mark.parametrize("kind", ["blocking", "async"])
async def test_middleware_stands_around_every_push(tiny, kind):
    """One or many, plain or with something of their own; what is alike stays one lot."""
    sign = Sign()
    async with connected(kind, tiny.address, middleware=[sign]) as client:
        single = await client("push", "q", {"a": 1}, name="n", job_key="k")
        many = await client("push_many", "q", [{"a": 1}, NewJob(b"2", job_key="j")], name="n")
        lot = await client("push_payloads", "q", [b"1", b"2"], name="n", request_id="r")
        again = await client("push_payloads", "q", [b"1", b"2"], name="n", request_id="r")
    ids = [single.id, *[entry.id for entry in many], *lot.ids]
    for id_ in ids:
        options = tiny.store.jobs[id_].options
        assert (dict(options.headers), options.name) == ({"by": "me"}, "n")
    kinds = [tiny.store.jobs[id_].options.content_type for id_ in ids]
    assert kinds == ["application/json", "application/json", "", "", ""]
    assert [len(request.payloads) for request in tiny.pushes] == [0, 0, 2, 2]
    assert list(again.ids) == list(lot.ids)
    assert sign.pushed == 7


async def test_an_empty_push_many_asks_nobody(tiny, either):
    """There is nothing to store."""
    assert await either("push_many", "q", []) == []
    assert not tiny.calls


async def test_many_jobs_with_their_own_options(tiny, either):
    """In one call, in order."""
    pushed = await either(
        "push_many",
        "q",
        [b"1", NewJob(b"2", options=JobOptions(name="other")), NewJob({"a": 1})],
        name="shared",
    )
    jobs = [tiny.store.jobs[entry.id] for entry in pushed]
    assert [job.options.name for job in jobs] == ["shared", "other", "shared"]
    assert [job.payload for job in jobs] == [b"1", b"2", b'{"a":1}']


async def test_a_call_that_was_lost_is_repeated_by_its_text(client):
    """Trial C1: what `OutcomeUnknown.request_id` says stands where a request id stands, for any
    client, also beside job keys.
    """
    text = PushCalls()()
    first = await client("push_payloads", "calls", [b"1", b"2"], request_id=text)
    assert await client("push_payloads", "calls", [b"1", b"2"], request_id=text) == first
    with pytest.raises(IdempotencyMismatch, match=r"producer\.sequence was used before"):
        await client("push_payloads", "calls", [b"3"], request_id=text)
    jobs, other = [NewJob(b"1", job_key=f"k-{text}"), b"2"], PushCalls()()
    many = await client("push_many", "calls", jobs, request_id=other)
    assert await client("push_many", "calls", jobs, request_id=other) == many


async def test_pushes_hold_no_place_in_the_tables_of_keys(client):
    """Trial C1: neither as job keys nor as request ids."""
    before = (await client("admin.stats")).keys
    for number in range(20):
        await client("push", "calls", b"x")
        await client("push_many", "calls", [b"x", {"a": number}])
    assert (await client("admin.stats")).keys == before


@pytest.mark.parametrize("count", [1, 0, -3, 2**31 - 1])
async def test_an_answer_that_speaks_of_other_jobs_says_nothing(tiny, either, count):
    """They may be stored or not, whichever call pushed them; it is not asked again."""
    tiny.wrong_count = count
    calls = [
        either("push_many", "q", [b"1", b"2"]),
        either("push_many", "q", [NewJob(b"1", job_key="a"), b"2"]),
        either("push_payloads", "q", [b"1", b"2"]),
        either("push_payloads", "q", [b"1", b"2"], unique_keys=["a", None]),
    ]
    for call in [*calls, *([either("push", "q", b"1")] if count != 1 else [])]:
        with pytest.raises(OutcomeUnknown, match=rf"the answer speaks of {count}$"):
            await call
    assert tiny.calls["Push"] == len(calls) + (count != 1)
