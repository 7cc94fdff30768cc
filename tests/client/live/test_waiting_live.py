"""Waiting over broken connections, and pushing when the ground goes away."""

from __future__ import annotations

import asyncio
import time

import grpc
import pytest

from jobline import ClientClosed, JoblineError, OutcomeUnknown, Unavailable, WaitTimeout


async def ended(tiny, count):
    """Jobs that have ended well."""
    ids = tiny.push("q", *[b"%d" % n for n in range(count)])
    for entry in tiny.store.lease(["q"], count, "somebody", []):
        tiny.store.ack(entry.id, entry.delivery, entry.payload)
    return ids


async def test_a_wait_goes_on_after_its_connection_broke(tiny, either):
    """Who was told is not asked for again, and nobody is told twice."""
    ids = await ended(tiny, 3)
    tiny.lose_answers("Wait", 2)
    ends = await either("wait", *ids, timeout=20)
    assert [end.value() for end in ends] == [0, 1, 2]
    assert tiny.calls["Wait"] == 3


async def test_a_wait_that_ends_early_goes_on(tiny, either):
    """That the time is over is for the client to say; it does not ask in a hurry."""
    (id_,) = await ended(tiny, 1)
    tiny.end_politely("Wait", 2)
    assert (await either("wait_one", id_, timeout=20)).value() == 0
    assert tiny.calls["Wait"] == 3
    (id_,) = tiny.push("q", b"")
    tiny.end_politely("Wait", 1_000)
    began = time.monotonic()
    with pytest.raises(WaitTimeout, match=r"within 0\.3 s"):
        await either("wait_one", id_, timeout=0.3)
    assert time.monotonic() - began >= 0.3
    assert tiny.calls["Wait"] < 3 + 12


async def test_a_wait_without_a_server_says_so(tiny, either):
    """In the time it was given."""
    await tiny.stop()
    with pytest.raises(Unavailable):
        await either("wait", 1, timeout=0.2)
    await tiny.start()


async def test_a_channel_that_somebody_closed_ends_the_pushes(tiny, either):
    """Those that fly and those that come."""
    gate = tiny.hold("Push")
    numbered = asyncio.create_task(either("push", "q", b""))
    await tiny.until(lambda: tiny.calls["Push"])
    if either.is_async:
        await either.client.channel.close()
    else:
        either.client.channel.close()
    with pytest.raises((OutcomeUnknown, ClientClosed)):
        await numbered
    for call in ("push", "push_many", "pull"):
        with pytest.raises(ClientClosed):
            await either(call, "q", *([b""],) * (call == "push_many"))
    gate.set()


@pytest.mark.parametrize("either", ["async"], indirect=True)
async def test_a_loop_that_ends_while_a_push_flies_tells_its_caller(tiny, either):
    """Its task is cancelled with all others; the caller must not wait for ever."""
    gate = tiny.hold("Push")
    push = asyncio.create_task(either("push", "q", b""))
    await tiny.until(lambda: tiny.calls["Push"])
    (flight,) = either.client._pushers()._flights
    flight.cancel()
    with pytest.raises(OutcomeUnknown, match="was cancelled"):
        await push
    gate.set()


async def test_answers_that_make_no_sense_are_not_believed(tiny, either):
    """And not asked for again: the outcome is unknown."""
    original = tiny.store.push

    def wrong(request):
        response = original(request)
        response.count += 1
        return response

    tiny.store.push = wrong
    with pytest.raises(OutcomeUnknown, match="the answer speaks of 2"):
        await either("push", "q", b"")
    assert tiny.calls["Push"] == 1


async def test_a_call_that_is_refused_is_typed(tiny, either):
    """Whatever the status."""
    tiny.refuse("Pull", grpc.StatusCode.DATA_LOSS, "damaged")
    with pytest.raises(JoblineError, match="damaged") as caught:
        await either("pull", "q")
    assert caught.value.code == "DATA_LOSS"
