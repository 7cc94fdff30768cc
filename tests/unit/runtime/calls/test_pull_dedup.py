"""What is known of pulls by their request ids: those in flight, and what was replied."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from jobline_server.engine.commands import Leased, LeasedJob, LeasedRun, Pull, RefusalKind, Refused
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, LeaseReason
from jobline_server.runtime.calls import pull_dedup
from jobline_server.runtime.calls.pull_dedup import PullDedup, PullKey, Run, leases_of, runs_of
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.calls.test_pulls import leases, pulled, pushed
from tests.unit.runtime.commits.test_commits import a_moment

PULL = Pull((("a", 1), ("b", 2)), 10, 500, worker="w", request_id=b"r", names=frozenset("xy"))
KEY = PullKey.of(PULL)
OTHER = PullKey.of(replace(PULL, max_jobs=11))


def a_run(first_id: int, jobs: int = 1) -> Leased:
    payloads = Payloads.of([b"x"] * jobs)
    return Leased(runs=[LeasedRun(first_id, 5, "a", DEFAULT_OPTIONS, payloads, 1_000, 0)])


def soon(seconds: float = 3_600) -> float:
    return asyncio.get_running_loop().time() + seconds


async def known(dedup: PullDedup, key: PullKey = KEY) -> list[Run]:
    return await dedup.of(key, soon(-1))


@pytest.fixture
def dedup() -> PullDedup:
    return PullDedup()


def test_a_repeat_has_the_same_key() -> None:
    """It has less time left to wait, and may name its queues in another order of the wire."""
    assert PullKey.of(replace(PULL, wait_ms=7)) == KEY
    assert PullKey.of(replace(PULL, names=frozenset("yx"))) == KEY


@pytest.mark.parametrize(
    ("change", "is_of_other_scope"),
    [
        ({"worker": "v"}, True),
        ({"request_id": b"s"}, True),
        ({"queues": (("a", 1),)}, True),
        ({"queues": (("a", 1), ("b", 3))}, False),
        ({"max_jobs": 9}, False),
        ({"message_bytes_max": 1}, False),
        ({"lease_ms": 1}, False),
        ({"accepts_runs": True}, False),
        ({"names": frozenset("x")}, False),
    ],
    ids=str,
)
def test_anything_else_makes_another_call_or_another_request(
    change: dict[str, Any], *, is_of_other_scope: bool
) -> None:
    """Of another call nothing is known; another request of the same call is refused."""
    key = PullKey.of(replace(PULL, **change))
    assert (key.scope != KEY.scope, key == KEY) == (is_of_other_scope, False)


async def test_a_reply_is_known_until_it_is_given_up(dedup: PullDedup) -> None:
    """The newest one, and once."""
    assert await known(dedup) == []
    assert dedup.give_up(KEY) == []
    dedup.remember(KEY, a_run(7, 3))
    dedup.remember(KEY, a_run(20))
    assert await known(dedup) == [Run(20, 1, 5)]
    assert dedup.give_up(KEY) == [Run(20, 1, 5)]
    assert (dedup.give_up(KEY), await known(dedup)) == ([], [])


async def test_an_empty_reply_is_not_known_and_takes_the_place_of_an_older_one(
    dedup: PullDedup,
) -> None:
    dedup.remember(KEY, a_run(7))
    dedup.remember(KEY, Leased())
    assert await known(dedup) == []


async def test_another_request_under_an_id_is_refused_wherever_the_first_stands(
    dedup: PullDedup,
) -> None:
    """In flight or replied; neither a look nor giving it up changes anything."""

    async def check() -> None:
        with pytest.raises(Refused) as looked:
            await dedup.of(OTHER, soon())
        with pytest.raises(Refused) as given_up:
            dedup.give_up(OTHER)
        for refused in (looked, given_up):
            assert refused.value.kind is RefusalKind.IDEMPOTENCY_MISMATCH

    with dedup.asking(KEY, lambda: None):
        await check()
    dedup.remember(KEY, a_run(7))
    await check()
    assert await known(dedup) == [Run(7, 1, 5)]


async def test_a_repeat_waits_for_the_first_and_is_told_the_same(dedup: PullDedup) -> None:
    with dedup.asking(KEY, lambda: None):
        repeat = asyncio.ensure_future(dedup.of(KEY, soon()))
        await a_moment()
        assert not repeat.done()
        dedup.remember(KEY, a_run(7))
    assert await repeat == [Run(7, 1, 5)]


async def test_a_repeat_waits_no_longer_than_its_own_time(dedup: PullDedup) -> None:
    """The first goes on."""
    with dedup.asking(KEY, lambda: None):
        for seconds in (-1, 0.001):
            with pytest.raises(TimeoutError):
                await dedup.of(KEY, soon(seconds))
        assert dedup.give_up(KEY) == []


async def test_one_of_the_repeats_asks_when_the_first_is_cancelled(dedup: PullDedup) -> None:
    """The others wait for that one."""
    asked: list[int] = []

    async def repeat(number: int) -> list[Run]:
        if not (runs := await dedup.of(KEY, soon())):
            with dedup.asking(KEY, lambda: None):
                asked.append(number)
                await a_moment()
                dedup.remember(KEY, a_run(7))
                runs = [Run(7, 1, 5)]
        return runs

    with suppress(asyncio.CancelledError), dedup.asking(KEY, lambda: None):
        repeats = [asyncio.ensure_future(repeat(number)) for number in range(3)]
        await a_moment()
        raise asyncio.CancelledError
    assert await asyncio.gather(*repeats) == [[Run(7, 1, 5)]] * 3
    assert len(asked) == 1


async def test_giving_up_ends_the_call_that_is_in_flight(dedup: PullDedup) -> None:
    ended: list[str] = []
    with dedup.asking(KEY, lambda: ended.append("first")):
        dedup.give_up(KEY)
    dedup.give_up(KEY)
    assert ended == ["first"]


def test_leases_are_lost_with_the_last_caller_that_was_told_of_them(dedup: PullDedup) -> None:
    """A repeat has them still; nobody has what is not known any more."""
    dedup.remember(KEY, a_run(7))
    dedup.tell_again(KEY)
    dedup.tell_again(KEY)
    assert [dedup.lose(KEY) for _ in range(4)] == [False, False, True, True]
    assert dedup.give_up(KEY) == []


async def test_replies_are_bounded_and_the_oldest_is_forgotten(
    dedup: PullDedup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their number, and by the jobs and runs in them."""
    monkeypatch.setattr(pull_dedup, "REMEMBERED_PULLS_MAX", 3)
    keys = [PullKey.of(replace(PULL, request_id=b"%d" % number)) for number in range(5)]
    for key in keys:
        dedup.remember(key, a_run(7))
    assert [bool(await known(dedup, key)) for key in keys] == [False, False, True, True, True]


async def test_what_is_forgotten_leaves_its_room_to_others(
    dedup: PullDedup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull_dedup, "REMEMBERED_LEASES_MAX", 2)
    for _ in range(3):
        dedup.remember(KEY, a_run(7))
        dedup.give_up(KEY)
    keys = [PullKey.of(replace(PULL, request_id=b"%d" % number)) for number in range(2)]
    for key in keys:
        dedup.remember(key, a_run(7))
    assert [bool(await known(dedup, key)) for key in keys] == [True, True]


def test_leases_are_listed_job_by_job() -> None:
    """Single jobs first, then runs."""
    job = LeasedJob(3, 9, "a", DEFAULT_OPTIONS, b"x", 1, LeaseReason.FIRST, 1_000, b"", 0, "")
    runs = runs_of(Leased(jobs=[job], runs=a_run(7, 2).runs))
    assert runs == [Run(3, 1, 9), Run(7, 2, 5)]
    assert list(leases_of(runs)) == [(3, 9), (7, 5), (8, 5)]
    assert list(leases_of(runs_of(Leased()))) == []


async def test_what_is_remembered_of_pulls_has_a_bound(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run is one thing to remember, however long; the oldest pull is forgotten first."""
    monkeypatch.setattr(pull_dedup, "REMEMBERED_LEASES_MAX", 5)
    await pushed(runtime, rows=6, plain=100)
    asked = {b"1": 3, b"2": 3, b"3": 100}
    for request_id, max_jobs in asked.items():
        await pulled(runtime, request_id, max_jobs=max_jobs)
    counts = {
        name: (await pulled(runtime, name, max_jobs=asked[name])).count()
        for name in (b"3", b"2", b"1")
    }
    assert counts == {b"3": 100, b"2": 3, b"1": 0}


@pytest.mark.parametrize("other", [{"worker": "v"}, {"queue": "news"}], ids=["worker", "queue"])
async def test_a_request_id_belongs_to_one_worker_and_its_queues(
    runtime: Runtime, other: dict[str, Any]
) -> None:
    """Trial A2: who uses the id of somebody else is given jobs of its own."""
    await pushed(runtime, rows=0, plain=2)
    await pushed(runtime, rows=0, plain=2, queue="news")
    first = await pulled(runtime, b"r", max_jobs=1)
    second = await pulled(runtime, b"r", max_jobs=1, **other)
    assert second.count() == 1
    assert leases(second) != leases(first)
    assert leases(await pulled(runtime, b"r", max_jobs=1)) == leases(first)


@pytest.mark.parametrize(
    "other",
    [{"max_jobs": 2}, {"lease_ms": 9_000}, {"names": frozenset({"n"})}, {"accepts_runs": False}],
    ids=lambda how: str(*how),
)
@pytest.mark.parametrize("is_waiting", [False, True], ids=["told", "waiting"])
async def test_another_request_under_the_id_is_refused(
    runtime: Runtime, other: dict[str, Any], *, is_waiting: bool
) -> None:
    """Trial A2: it is not told the reply to something else."""
    if is_waiting:
        first = asyncio.ensure_future(pulled(runtime, b"r", wait_ms=20_000))
        await a_moment()
    await pushed(runtime, rows=0, plain=3)
    if not is_waiting:
        first = asyncio.ensure_future(pulled(runtime, b"r"))
        await first
    with pytest.raises(Refused) as refused:
        await pulled(runtime, b"r", **other)
    assert refused.value.kind is RefusalKind.IDEMPOTENCY_MISMATCH
    assert (await first).count() == 3
