"""Clients that are closed, or whose loop is gone, while somebody still uses them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jobline import (
    AsyncClient,
    ClientClosed,
    FailedPrecondition,
    JoblineError,
    OutcomeUnknown,
    Unavailable,
)
from jobline._push.calls import id_of
from tests.client.live.either import connected


async def close_channel(either):
    """Somebody closes the channel under the client."""
    if either.is_async:
        await either.client.channel.close()
    else:
        either.client.channel.close()


@pytest.mark.parametrize(("call", "arguments"), [("wait", [1]), ("watch", [])])
async def test_a_closed_client_says_that_it_is_closed(tiny, either, call, arguments):
    """Also where answers are streamed."""
    await either("push", "q", b"")
    await either("close")
    with pytest.raises(ClientClosed):
        await either(call, *arguments)


@pytest.mark.parametrize("either", ["async"], indirect=True)
async def test_closing_cancels_nobody_but_the_call(tiny, either):
    """The task that waits for an answer is told what happened; it has not been cancelled."""
    tiny.push("q", b"")
    tiny.hold("Pull")
    pulling = asyncio.create_task(either("pull", "q"))
    waiting = asyncio.create_task(either("wait", 1, timeout=20))
    acking = asyncio.create_task(either("ack", (1, 1)))
    tiny.hold("Ack")
    await tiny.until(lambda: tiny.calls["Pull"] and tiny.calls["Wait"] and tiny.calls["Ack"])
    await either("close")
    for task, kind in (
        (pulling, Unavailable),
        (waiting, ClientClosed),
        (acking, OutcomeUnknown),
    ):
        with pytest.raises(kind):
            await task


@pytest.mark.parametrize("either", ["async"], indirect=True)
async def test_pushes_behind_one_whose_channel_was_closed_are_told_too(tiny, either):
    """Nobody waits for ever, and `close` does not either."""
    tiny.hold("Push")
    numbered = asyncio.create_task(either("push", "q", b"1"))
    await tiny.until(lambda: tiny.calls["Push"])
    behind = asyncio.create_task(either("push", "q", b"2"))
    await either.gathered(2)
    await close_channel(either)
    with pytest.raises(OutcomeUnknown) as caught:
        await numbered
    assert caught.value.request_id
    with pytest.raises(ClientClosed):
        await behind
    await either("close")


async def test_a_push_that_flew_before_is_not_called_unsent(tiny, either):
    """Its first try may have been stored; that the second could not leave says nothing of it."""
    tiny.lose_answers("Push", 1_000)
    push = asyncio.create_task(either("push", "q", b""))
    many = asyncio.create_task(either("push_many", "q", [b"1", b"2"]))
    await tiny.until(lambda: len({id_of(request) for request in tiny.pushes}) == 2)
    await close_channel(either)
    for task in (push, many):
        with pytest.raises(OutcomeUnknown) as caught:
            await task
        assert caught.value.request_id in {id_of(request) for request in tiny.pushes}


@pytest.mark.parametrize("kind", ["blocking", "async"])
async def test_each_caller_gets_an_error_of_its_own(tiny, kind):
    """One exception raised in two places would mix their traces."""
    async with connected(kind, tiny.address, timeout=0.3) as either:
        tiny.lose_answers("Push", 1_000)
        gate = tiny.hold("Push")
        pushes = [asyncio.create_task(either("push", "q", b"0"))]
        await tiny.until(lambda: tiny.calls["Push"])
        pushes += [asyncio.create_task(either("push", "q", b"1")) for _ in range(3)]
        await either.gathered(4)
        gate.set()
        errors = await asyncio.gather(*pushes, return_exceptions=True)
    assert {type(error) for error in errors} == {OutcomeUnknown}
    assert len({id(error) for error in errors}) == 4


@pytest.mark.parametrize("kind", ["blocking", "async"])
async def test_a_push_that_shared_its_call_is_not_repeated_by_it(tiny, kind):
    """Trial C1: two callers with equal payloads would repeat the call of both, and get one job."""
    async with connected(kind, tiny.address, timeout=0.3) as either:
        tiny.lose_answers("Push", 1_000)
        gate = tiny.hold("Push")
        pushes = [asyncio.create_task(either("push", "q", b"tick"))]
        await tiny.until(lambda: tiny.calls["Push"])
        pushes += [asyncio.create_task(either("push", "q", b"tick")) for _ in range(2)]
        await either.gathered(3)
        gate.set()
        told: list[Any] = await asyncio.gather(*pushes, return_exceptions=True)
    alone, *shared = told
    assert alone.request_id
    assert [error.request_id for error in shared] == [None, None]


async def test_an_answer_that_breaks_the_client_is_told_to_all(tiny, either, monkeypatch):
    """Whatever a library raises, nobody waits for ever."""
    room = "_asynchronous" if either.is_async else "_blocking"

    def broken(response, batch):
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(f"jobline.{room}.pusher.answers_of_batch", broken)
    async with asyncio.timeout(10):
        with pytest.raises(OutcomeUnknown, match="a bug of ours") as caught:
            await either("push", "q", b"")
    assert caught.value.request_id


@pytest.mark.parametrize("kind", ["async"])
async def test_a_close_that_is_cancelled_leaves_no_channel_behind(tiny, kind):
    """It does not wait for the last push any more, but it hangs up."""
    async with connected(kind, tiny.address, timeout=2) as either:
        tiny.hold("Push")
        push = asyncio.create_task(either("push", "q", b""))
        await tiny.until(lambda: tiny.calls["Push"])
        closing = asyncio.create_task(either("close"))
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        with pytest.raises(JoblineError):
            await push
        with pytest.raises(ClientClosed):
            await either("pull", "q")


def test_a_client_of_another_loop_says_so():
    """What grpc would say is that a loop is closed, or nothing at all."""
    client = AsyncClient("localhost:1", timeout=0.1)

    async def pull():
        await client.pull("q")

    with pytest.raises(JoblineError):  # nobody listens
        asyncio.run(pull())
    for call in (pull, lambda: client.push("q")):
        with pytest.raises(FailedPrecondition, match="another event loop"):
            asyncio.run(call())
