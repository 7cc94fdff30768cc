"""Pushes of one iteration of the loop: what becomes one lot, and what each caller hears."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from jobline_server.engine.commands import Push, Pushed, RefusalKind, Refused
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.producers import Call
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobOptions
from jobline_server.runtime.calls import push_batcher
from jobline_server.runtime.commits import commits
from jobline_server.runtime.runtime import Runtime
from jobline_server.storage.store import DiskFull
from tests.pushed_payloads import payloads_of
from tests.pushed_rows import NewJob, rows_of

OTHER_OPTIONS = JobOptions(name="other")


def a_push(*payloads: bytes, queue: str = "mail", **rest: Any) -> Push:
    options = rest.pop("options", DEFAULT_OPTIONS)
    level = rest.pop("level", AckLevel.BUFFERED)
    return Push(queue, options, payloads=Payloads.of(payloads), level=level, **rest)


def with_columns(*payloads: bytes, **columns: Any) -> Push:
    """A push of payloads with something of their own."""
    return replace(a_push(), payloads=payloads_of(payloads, **columns))


async def pushed_at_once(runtime: Runtime, *pushes: Push) -> list[Pushed | BaseException]:
    return await asyncio.gather(*map(runtime.pushes.push, pushes), return_exceptions=True)


def lots(runtime: Runtime) -> list[list[bytes]]:
    return [list(lot.payloads) for lot in runtime.core.slots[0].shard.lots.lots.values()]


async def test_small_pushes_of_one_turn_become_one_lot(runtime: Runtime) -> None:
    """Ids follow each other in the order of arrival, and each caller hears of its own."""
    outcomes = await pushed_at_once(runtime, a_push(b"1"), a_push(b"2", b"3"), a_push(b"4"))
    first, second, third = (one for one in outcomes if isinstance(one, Pushed))
    assert [first.count, second.count, third.count] == [1, 2, 1]
    assert [second.first_id, third.first_id] == [first.first_id + 1, first.first_id + 3]
    assert lots(runtime) == [[b"1", b"2", b"3", b"4"]]


async def test_pushes_with_the_same_headers_become_one_lot(runtime: Runtime) -> None:
    """Each of them with its own values, as a program with tracing sends them."""
    pushes = [
        with_columns(b"%d" % index, headers={"trace": [f"t{index}"], "b": [""]})
        for index in range(3)
    ]
    await pushed_at_once(runtime, *pushes)
    (lot,) = runtime.core.slots[0].shard.lots.lots.values()
    headers = [lot.payloads.options_of(index, DEFAULT_OPTIONS).headers for index in range(3)]
    assert headers == [(("trace", f"t{index}"),) for index in range(3)]


@pytest.mark.parametrize(
    "other",
    [
        a_push(b"x", queue="print"),
        a_push(b"x", options=OTHER_OPTIONS),
        a_push(b"x", level=AckLevel.MEMORY),
        a_push(b"x", run_at_ms=1 << 50),
        a_push(b"x", request_id=b"r"),
        a_push(bytes(push_batcher.SMALL_BYTES_MAX)),
        with_columns(b"x", headers={"a": ["1"]}),
        with_columns(b"x", job_keys=["k"]),
        with_columns(b"x", headers={"a": ["v" * push_batcher.SMALL_BYTES_MAX]}),
    ],
    ids=[
        "queue",
        "options",
        "level",
        "time",
        "request id",
        "size",
        "headers",
        "keys",
        "large headers",
    ],
)
async def test_what_differs_stays_apart(runtime: Runtime, other: Push) -> None:
    await pushed_at_once(runtime, a_push(b"1"), other, a_push(b"2"))
    assert sorted(map(len, lots(runtime))) == [1, 2]


async def test_a_burst_has_a_bound(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push_batcher, "TOGETHER_MAX", 2)
    await pushed_at_once(runtime, *[a_push(b"x")] * 5)
    assert list(map(len, lots(runtime))) == [2, 2, 1]


async def test_where_calls_come_one_by_one_they_are_decided_at_once(runtime: Runtime) -> None:
    """But for one of many, which looks whether bursts come again; then they do wait."""
    for _ in range(push_batcher.LOOK_EVERY):
        await runtime.pushes.push(a_push(b"x"))
    burst = [a_push(b"y")] * push_batcher.BURST_MIN
    await pushed_at_once(runtime, *burst)
    await pushed_at_once(runtime, *burst)
    sizes = list(map(len, lots(runtime)))
    assert sizes == [1] * push_batcher.LOOK_EVERY + [push_batcher.BURST_MIN] * 2


async def test_what_does_not_fit_together_is_decided_one_by_one(runtime: Runtime) -> None:
    """Who comes first is served, and only who does not fit is refused."""
    runtime.core.load.waiting_max = 3
    first, second, third = await pushed_at_once(
        runtime, a_push(b"1", b"2"), a_push(b"3", b"4"), a_push(b"5")
    )
    assert isinstance(first, Pushed)
    assert isinstance(second, Refused)
    assert second.kind is RefusalKind.SERVER_FULL
    assert isinstance(third, Pushed)
    assert lots(runtime) == [[b"1", b"2"], [b"5"]]


async def test_callers_wait_for_the_disk_each_for_itself(runtime: Runtime) -> None:
    """One that is cancelled takes nobody along; one that left before anything was decided pushes
    nothing."""
    calls = [
        asyncio.ensure_future(runtime.pushes.push(a_push(payload, level=AckLevel.FSYNCED)))
        for payload in (b"1", b"2", b"3")
    ]
    await asyncio.sleep(0)
    calls[0].cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert lots(runtime) == [[b"2", b"3"]]
    calls[1].cancel()
    assert not calls[2].done()
    await runtime.core.commits.commit_once()
    assert (await calls[2]).count == 1
    assert calls[1].cancelled()


async def test_calls_of_producers_become_one_lot_and_a_copy_is_told_the_same(
    runtime: Runtime,
) -> None:
    """Trial C1: also a copy that arrives in the same iteration of the loop."""
    pushes = [a_push(b"x", calls=(Call(bytes([n]) * 16, 1, 0, 7),)) for n in range(4)]
    outcomes = await pushed_at_once(runtime, *pushes)
    assert lots(runtime) == [[b"x"] * 4]
    assert await pushed_at_once(runtime, *pushes, *pushes) == outcomes * 2
    new = [a_push(b"y", calls=(Call(bytes([n % 4]) * 16, 2, 2, 7),)) for n in range(8)]
    told = await pushed_at_once(runtime, *new)
    assert told[:4] == told[4:]
    assert lots(runtime)[1:] == [[b"y"]] * 4


async def test_a_failure_that_nobody_foresaw_reaches_every_caller(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A callback of the loop has no caller of its own who would hear of it."""

    def fails(*_: object) -> Pushed:
        raise LookupError("a mistake")

    monkeypatch.setattr(push_batcher, "decide_push", fails)
    outcomes = await pushed_at_once(runtime, a_push(b"1"), a_push(b"2"))
    assert [type(outcome) for outcome in outcomes] == [LookupError, LookupError]


async def a_crowd(runtime: Runtime) -> None:
    """So many push at the same time that commits wait for more."""
    crowd = [asyncio.ensure_future(runtime.pushes.push(fsynced(b"c"))) for _ in range(8)]
    for _ in range(3):
        await asyncio.sleep(0)
    await runtime.core.commits.commit_once()
    await asyncio.gather(*crowd)
    assert runtime.core.commits.has_crowd


def fsynced(*payloads: bytes, **rest: Any) -> Push:
    return a_push(*payloads, level=AckLevel.FSYNCED, **rest)


async def begun(runtime: Runtime, *pushes: Push) -> list[asyncio.Task[Pushed]]:
    """Each in a turn of its own."""
    calls = []
    for push in pushes:
        calls.append(asyncio.ensure_future(runtime.pushes.push(push)))
        await asyncio.sleep(0)
    return calls


async def test_what_waits_for_a_crowd_is_decided_when_the_commit_is_cut(runtime: Runtime) -> None:
    """It would have had to wait in any case, and is one lot. What waits for no disk does not."""
    await a_crowd(runtime)
    calls = await begun(runtime, fsynced(b"1"), fsynced(b"2", b"3"), fsynced(b"4"))
    assert lots(runtime) == [[b"c"] * 8]
    assert (await runtime.pushes.push(a_push(b"5"))).count == 1
    await runtime.core.commits.commit_once()
    first, second, third = await asyncio.gather(*calls)
    assert [second.first_id - first.first_id, third.first_id - first.first_id] == [1, 3]
    assert lots(runtime)[1:] == [[b"5"], [b"1", b"2", b"3", b"4"]]


async def test_a_full_disk_refuses_what_waits_for_the_commit(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial B6: at once, and not when there is room again; nor does anybody wait for it then."""
    await a_crowd(runtime)
    store, full = runtime.core.commits._store, asyncio.Event()
    commit = store.commit

    async def finds_it_full(*arguments: Any) -> None:
        if not full.is_set():
            full.set()
            raise DiskFull("no room")
        await commit(*arguments)

    monkeypatch.setattr(store, "commit", finds_it_full)
    monkeypatch.setattr(commits, "FULL_RETRY_SECONDS", 3_600)
    await begun(runtime, fsynced(b"1"))
    writing = asyncio.ensure_future(runtime.core.commits.commit_once())
    (waits,) = await begun(runtime, fsynced(b"2"))
    await full.wait()
    with pytest.raises(Refused) as refused:
        await waits
    assert refused.value.kind is RefusalKind.DISK_FULL
    assert not runtime.core.commits.has_crowd
    writing.cancel()


async def test_a_failed_disk_is_told_to_what_waits_for_the_commit(runtime: Runtime) -> None:
    await a_crowd(runtime)
    (waits,) = await begun(runtime, fsynced(b"1"))
    runtime.core.commits.fail(OSError("the disk is gone"))
    (late,) = await begun(runtime, fsynced(b"2"))
    for waiting in (waits, late):
        with pytest.raises(Refused) as refused:
            async with asyncio.timeout(5):
                await waiting
        assert refused.value.kind is RefusalKind.STORAGE_FAILED
    runtime.core.commits.failed.exception()


@pytest.mark.parametrize(("jobs", "decided"), [(3, True), (4, False)])
async def test_many_jobs_with_ties_are_read_and_decided_in_two_steps(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, jobs: int, decided: bool
) -> None:
    """A caller that goes away in between has pushed nothing."""
    monkeypatch.setattr(push_batcher, "APART_TIES", 4)
    rows = rows_of(NewJob(b"x", DEFAULT_OPTIONS, ties=Ties(group=f"g{n}")) for n in range(jobs))
    push = replace(a_push(), payloads=Payloads.of([]), rows=rows)
    tasks = [asyncio.ensure_future(runtime.pushes.push(push)) for _ in range(2)]
    await asyncio.sleep(0)
    assert bool(lives(runtime)) is decided
    if not decided:
        tasks[1].cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    kept = [one for one in outcomes if isinstance(one, Pushed)]
    assert [one.count for one in kept] == [jobs] * len(kept)
    assert lives(runtime) == jobs * len(kept) == jobs * (2 if decided else 1)


def lives(runtime: Runtime) -> int:
    return runtime.core.load.live_jobs
