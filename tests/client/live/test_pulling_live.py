"""Pulls that bring no reply: the server is told that nobody has what they leased."""

from __future__ import annotations

import asyncio

import pytest

from jobline import AsyncClient, Unavailable


async def test_a_pull_without_an_answer_gives_back_what_it_leased(either, tiny):
    """Trial A3: its jobs would be with nobody until their leases end."""
    tiny.push("q", b"x")
    tiny.lose_answers("Pull", times=5)
    with pytest.raises(Unavailable):
        await either("pull", "q", worker="w")
    await tiny.until(lambda: tiny.given_back)
    (request,) = tiny.given_back
    assert (request.worker, bool(request.request_id)) == ("w", True)


async def test_a_pull_that_is_cancelled_gives_back_what_it_may_have_leased(tiny):
    """Trial A3: its reply may have been on the way."""
    gate = tiny.hold("Pull")
    async with AsyncClient(tiny.address) as client:
        pull = asyncio.ensure_future(client.pull("q", wait=20))
        await tiny.until(lambda: tiny.calls["Pull"])
        pull.cancel()
        await asyncio.wait([pull])
        await tiny.until(lambda: tiny.given_back)
    gate.set()
    assert pull.cancelled()


@pytest.mark.parametrize("settle", ["ack", "release", "extend"])
async def test_settling_no_jobs_makes_no_call(either, tiny, settle):
    """A loop that failed all that it pulled acks the rest, which is empty."""
    assert await either(settle) == []
    assert not tiny.calls
