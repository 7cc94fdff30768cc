"""Waits of one client share calls, and each keeps its own time."""

from __future__ import annotations

import asyncio
import time

import pytest

from jobline import AsyncClient, JobState, WaitTimeout
from jobline._wait import wait_board

# Blocking calls of a test have 32 threads.
WAITS = 30


def finish(tiny):
    """Everything that waits completes."""
    for job in tiny.store.lease(["q"], 1_000, "somebody", []):
        tiny.store.ack(job.id, job.delivery, job.payload)


def wait_each(either, ids, timeout=20.0):
    return [asyncio.create_task(either("wait_one", id_, timeout=timeout)) for id_ in ids]


async def so(condition):
    """A pure part has no event to wait for."""
    while not condition():  # noqa: ASYNC110  # as it says
        await asyncio.sleep(0.001)


async def all_asked(tiny, either, count):
    """The server has heard of so many jobs."""
    board = either.client._waits()._board
    await so(lambda: len(board._wanted) >= count and not board._pending)
    await tiny.until(lambda: tiny.calls["Wait"] >= board.calls)


async def test_waits_share_a_few_calls(tiny, either, monkeypatch):
    """However many there are: those that find some calls open gather."""
    monkeypatch.setattr(wait_board, "GATHER_SECONDS", 1.0)  # a busy machine begins slowly
    ids = tiny.push("q", *[b"%d" % number for number in range(WAITS)])
    waits = wait_each(either, ids)
    await all_asked(tiny, either, WAITS)
    finish(tiny)
    assert [(await wait).value() for wait in waits] == list(range(WAITS))
    assert tiny.calls["Wait"] <= wait_board.CALLS_AT_ONCE + 5


async def test_each_wait_keeps_its_own_time(tiny, either):
    """By the clock of the client: the call that it shares goes on, and the server says nothing."""
    ids = tiny.push("q", *[b"%d" % number for number in range(4)])
    tiny.hold("Wait")
    waits = wait_each(either, ids[:3])
    await all_asked(tiny, either, 3)
    began = time.monotonic()
    with pytest.raises(WaitTimeout, match=r"within 0\.2 s"):
        await either("wait_one", ids[3], timeout=0.2)
    with pytest.raises(WaitTimeout):
        await either("wait_one", ids[0], timeout=0.2)
    assert 0.4 <= time.monotonic() - began < 10
    tiny.gates["Wait"].set()
    finish(tiny)
    assert [(await wait).value() for wait in waits] == [0, 1, 2]


@pytest.mark.parametrize("more", [{}, {"count": 200}])
async def test_a_wait_of_its_own_keeps_its_time_too(tiny, either, more):
    """A server that is silent does not hold it up: for many jobs, or for pieces of a result."""
    ids = tiny.push("q", *[b"x"] * more.get("count", 1))
    tiny.hold("Wait")
    began = time.monotonic()
    if more:
        assert await either("wait", *ids, timeout=0.3) == []
    else:
        with pytest.raises(WaitTimeout):
            await either("partials", ids[0], timeout=0.3)
    assert 0.3 <= time.monotonic() - began < 10


@pytest.mark.parametrize("either", ["async"], indirect=True)
async def test_a_wait_that_is_cancelled_disturbs_no_other(tiny, either):
    """Nor does the first, whose call it was."""
    await either("connect")
    ids = tiny.push("q", *[b"%d" % number for number in range(5)])
    waits = wait_each(either, ids)
    await all_asked(tiny, either, 5)
    assert tiny.calls["Wait"] == 1
    waits[0].cancel()
    waits[3].cancel()
    await asyncio.wait([waits[0], waits[3]])
    finish(tiny)
    assert [(await waits[index]).value() for index in (1, 2, 4)] == [1, 2, 4]


@pytest.mark.parametrize("either", ["async"], indirect=True)
async def test_the_server_is_told_when_nobody_waits_any_more(tiny, either):
    """Otherwise it would keep the jobs until the hour is over."""
    (id_,) = tiny.push("q", b"")
    (wait,) = wait_each(either, [id_])
    await all_asked(tiny, either, 1)
    wait.cancel()
    await asyncio.wait([wait])
    waits = either.client._waits()
    assert waits._board.calls == 0
    await asyncio.wait(waits._reading)


async def test_all_waits_go_on_when_the_server_is_back(tiny, either):
    """One pause for all of them."""
    ids = tiny.push("q", *[b"%d" % number for number in range(WAITS)])
    waits = wait_each(either, ids)
    await all_asked(tiny, either, WAITS)
    port = int(tiny.address.rpartition(":")[2])
    await tiny.stop()
    await tiny.start(port)
    finish(tiny)
    assert [(await wait).value() for wait in waits] == list(range(WAITS))


async def test_one_job_may_be_waited_for_by_many(tiny, either):
    """All are told."""
    (id_,) = tiny.push("q", b'"done"')
    waits = wait_each(either, [id_] * WAITS)
    board = either.client._waits()._board
    await so(lambda: id_ in board._wanted and len(board._wanted[id_].waiters) == WAITS)
    finish(tiny)
    assert [(await wait).value() for wait in waits] == ["done"] * WAITS


async def test_a_push_is_answered_beside_twelve_thousand_waits(server):
    """With a call for each they would have held up every push: a connection has 10,000."""
    async with AsyncClient(server.address) as client:
        lots = [await client.push_payloads("many-waits", [b""] * 6_000) for _ in range(2)]
        ids = [id_ for lot in lots for id_ in lot.ids]
        waits = [asyncio.create_task(client.wait_one(id_, timeout=300)) for id_ in ids]
        board = client._waits()._board
        await so(lambda: len(board._wanted) == len(ids) and not board._pending)
        assert board.calls == 2
        async with asyncio.timeout(60):
            await client.push("other", b"")
            await client.jobs.cancel(queue="many-waits")
            ends = await asyncio.gather(*waits)
    assert {end.state for end in ends} == {JobState.CANCELLED}
