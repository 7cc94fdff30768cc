"""Waits of the program under test end by the clock that the test moves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pytest

from jobline import AsyncClient, Client, JobEnd, Pushed, WaitTimeout, job
from jobline._moved_clocks import UNMOVED, clock_of
from jobline_server.testing import AsyncJobline, Jobline
from jobline_server.testing.working import worker_of, working, working_here

MANY = 200  # jobs whose wait has a call of its own


@job(queue="sums")
def plus_one(number: int) -> int:
    return number + 1


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as threads:
        yield threads


def begun(address: str, waits: int) -> bool:
    """Returns whether so many waits hear of moves: then their time has begun."""
    return len(clock_of(address)._watchers) >= waits


def ids_of(pushed: list[Pushed]) -> list[int]:
    return [one.id for one in pushed]


def test_as_soon_as_it_has_passed_their_time(jobline: Jobline, pool: ThreadPoolExecutor) -> None:
    """And not before; what has ended by then is an answer."""
    client = Client()  # of the program under test

    def start(ids: list[int]) -> Future[list[JobEnd]]:
        return pool.submit(lambda: list(client.wait(*ids, timeout="1h")))

    with client, working(worker_of(jobline.address, [plus_one])):
        never = ids_of(client.push_many("nobody", [1] * MANY))
        late = ids_of(plus_one.push_many(client, [1] * MANY, delay="59m"))
        waits = [start(never[:1]), start(never), start(late[:1]), start(late)]
        pieces = pool.submit(lambda: list(client.partials(never[0], timeout="1h")))
        one = pool.submit(client.push_and_wait, "nobody", 1, timeout="1h")
        while not begun(jobline.address, 6):
            time.sleep(0.001)
        jobline.advance("50m")
        going: list[Future[Any]] = [*waits, pieces, one]
        assert not wait(going, timeout=0.1).done
        jobline.advance("11m")
        ends = [[(end.id, end.value()) for end in waiting.result(10)] for waiting in waits]
        assert [sorted(some) for some in ends] == [
            [],
            [],
            [(late[0], 2)],
            [(id_, 2) for id_ in late],
        ]
        for late_one in going[4:]:
            with pytest.raises(WaitTimeout, match="within 3600 s"):
                late_one.result(10)


async def test_in_a_loop(jobline: AsyncJobline) -> None:
    """It is the same for an AsyncClient."""

    async def all_of(ids: list[int]) -> list[JobEnd]:
        return [end async for end in client.wait(*ids, timeout="1h")]

    async with AsyncClient() as client, working_here(worker_of(jobline.address, [plus_one])):
        never = ids_of(await client.push_many("nobody", [1] * MANY))
        late = ids_of(await plus_one.push_many(client, [1] * MANY, delay="59m"))
        waits = [asyncio.create_task(all_of(ids)) for ids in (never[:1], never, late[:1], late)]
        one = asyncio.create_task(client.push_and_wait("nobody", 1, timeout="1h"))
        while not begun(jobline.address, 5):  # noqa: ASYNC110  # a clock has no event
            await asyncio.sleep(0.001)
        await jobline.advance("50m")
        done, _ = await asyncio.wait([*waits, one], timeout=0.1)
        assert not done
        await jobline.advance("11m")
        async with asyncio.timeout(10):
            assert [len(some) for some in await asyncio.gather(*waits)] == [0, 0, 1, MANY]
            with pytest.raises(WaitTimeout, match="within 3600 s"):
                await one


def test_a_server_without_a_test_has_no_such_clock(jobline: Jobline) -> None:
    """The kit that is closed leaves none behind."""
    assert clock_of(jobline.address) is not UNMOVED
    assert clock_of("localhost:7070") is UNMOVED
    jobline.close()
    assert clock_of(jobline.address) is UNMOVED
    jobline.client.queues  # noqa: B018  # the fixture closes it again


async def test_moves_at_once_count_once(jobline: AsyncJobline) -> None:
    """Each by what it moves the clock, not by what others do meanwhile."""
    began = jobline.now
    await asyncio.gather(*(jobline.advance("10m") for _ in range(3)))
    moved = (jobline.now - began).total_seconds()
    assert clock_of(jobline.address).seconds() == moved
