"""Statistics go in slices, with the loop free between."""

from __future__ import annotations

import asyncio

import pytest

from jobline_server.engine.commands import Push
from jobline_server.engine.decide.queues import decide_delete_queue
from jobline_server.engine.items import items_from
from jobline_server.engine.lot import Lot
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel
from jobline_server.runtime.calls import queues, statistics
from jobline_server.runtime.ended import ended_jobs
from jobline_server.runtime.runtime import Runtime
from jobline_server.storage.ended_store import DeadGroup
from tests.unit.rounds import rounds_of

GROUPS = 6_000
QUEUES = 50
STEP = 10


async def some_queues(runtime: Runtime) -> None:
    """Queues with a job each."""
    for number in range(QUEUES):
        payloads = Payloads.of([b"x"])
        push = Push(f"q{number:02}", DEFAULT_OPTIONS, payloads=payloads, level=AckLevel.BUFFERED)
        await runtime.pushes.push(push)


async def test_statistics_of_many_queues_yield(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial C2: a hundred thousand were counted in one step of 150 ms."""
    monkeypatch.setattr(statistics, "STEP_QUEUES", STEP)
    await some_queues(runtime)
    view, rounds = await rounds_of(runtime.statistics.of_server())
    assert (view.queues, view.ready, view.pushed_total) == (QUEUES, QUEUES, QUEUES)
    assert [shard.live_jobs for shard in view.shards] == [QUEUES]
    assert rounds > QUEUES // STEP


async def test_totals_keep_what_deleted_queues_have_counted(runtime: Runtime) -> None:
    """For Prometheus a total that falls is a restart, and all that is left was counted since."""
    await some_queues(runtime)
    shard = runtime.core.slots[0].shard
    shard.queues["q01"].completed_total, shard.queues["q02"].failed_total = 3, 2
    for name in ("q01", "q02"):
        decide_delete_queue(shard, runtime.core.now(), name, force=False)
    view = await runtime.statistics.of_server()
    assert (view.queues, view.ready) == (QUEUES - 2, QUEUES - 2)
    assert (view.pushed_total, view.completed_total, view.failed_total) == (QUEUES, 3, 2)


async def test_a_queue_that_goes_while_totals_are_added_up_counts_once(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether its turn has come or not: twice would be a fall at the next look."""
    monkeypatch.setattr(statistics, "STEP_QUEUES", STEP)
    await some_queues(runtime)
    shard = runtime.core.slots[0].shard
    adding = asyncio.ensure_future(runtime.statistics.of_server())
    await asyncio.sleep(0)
    for name in ("q00", f"q{QUEUES - 1}"):
        decide_delete_queue(shard, runtime.core.now(), name, force=False)
    assert (await adding).pushed_total == QUEUES
    assert (await runtime.statistics.of_server()).pushed_total == QUEUES


async def test_a_list_of_many_queues_yields(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial C2: and shows only those that are on its page."""
    monkeypatch.setattr(queues, "STEP_QUEUES", STEP)
    await some_queues(runtime)
    names = sorted(f"q{number:02}" for number in range(QUEUES))
    shown: list[str] = []
    page = ""
    while not shown or page:
        listing = runtime.queues.list_queues(page_size=STEP, page_token=page, prefix="q")
        (views, page), rounds = await rounds_of(listing)
        assert rounds > QUEUES // STEP
        shown += [view.name for view in views]
    assert shown == names


async def test_queues_that_go_while_they_are_listed_are_left_out(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial C2: the page goes on behind them all the same."""
    monkeypatch.setattr(queues, "STEP_QUEUES", STEP)
    await some_queues(runtime)
    task = asyncio.ensure_future(runtime.queues.list_queues(page_size=5, page_token="", prefix=""))
    await asyncio.sleep(0)
    for name in ("q01", "q04"):
        del runtime.core.slots.of_queue(name).shard.queues[name]
    views, token = await task
    assert ([view.name for view in views], token) == (["q00", "q02", "q03"], "q04")


async def test_a_walk_over_many_queues_yields_before_it_begins(runtime: Runtime) -> None:
    """Trial C2: to find where the jobs of each lie is work too, of a list as of a deletion."""
    await some_queues(runtime)
    shard = runtime.core.slots[0].shard
    looks = list(items_from(shard, None, 0, STEP))
    found = [item.first_id for look in looks for item in look if isinstance(item, Lot)]
    assert found == sorted(shard.lots.lots)
    assert len(looks) > QUEUES // STEP


async def test_statistics_of_many_kinds_of_dead_jobs_yield(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial E5: a type of error for each of many dead jobs."""
    groups = [DeadGroup("q", "", 1, str(number), 1, 0, 0) for number in range(GROUPS)]

    async def found(_queue: str) -> list[DeadGroup]:
        return groups

    monkeypatch.setattr(runtime.ended.ended_store, "dead_statistics", found)
    counts, rounds = await rounds_of(runtime.statistics.of_dead_letters(""))
    assert (len(counts), rounds > GROUPS // ended_jobs.LOOKUP_JOBS) == (GROUPS, True)
