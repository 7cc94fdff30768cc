"""A shard that fails, fails alone: its callers are refused, and the others notice nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from gc import collect
from pathlib import Path
from weakref import ref

import pytest

from jobline_server.engine.commands import ExtendItem, FailItem, Refused, ReleaseItem
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.values import AckLevel, JobError, JobState, SettleOutcome
from jobline_server.runtime.calls.pull_dedup import leases_of, runs_of
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.idle_queues import delete_idle_queues
from jobline_server.runtime.slots import ShardSlot
from jobline_server.runtime.views import Audit, JobFilter, Selection
from jobline_server.runtime.watch.feed_reader import Room
from jobline_server.runtime.watch.watch_filter import WatchFilter
from jobline_server.storage.ended_store import EndedSpan
from jobline_server.storage.store import Fenced
from tests.unit.runtime.shard_faults import (
    LOST,
    OTHER,
    SHARDS,
    World,
    a_moment,
    a_world,
    goes_on,
    refused,
)

LEASE_LOST = SettleOutcome.LEASE_LOST


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as one:
        yield one


async def test_callers_that_wait_for_a_fenced_shard_are_refused_and_others_are_answered(
    world: World,
) -> None:
    """One transaction held the rows of both; those of the others are written without it."""
    await world.fence()
    pushes = [asyncio.ensure_future(world.push(shard)) for shard in range(SHARDS)]
    await refused(pushes[LOST])
    assert [(await pushes[shard]).count for shard in (0, OTHER)] == [1, 1]
    assert (world.here, world.runtime.failed.done()) == ([0, OTHER], False)
    await goes_on(world)


async def test_calls_that_come_for_a_lost_shard_are_refused(world: World) -> None:
    """Whatever names its queues or jobs; what names others is served."""
    pushed = await world.push(LOST)
    await world.lose()
    runtime, queue, first_id = world.runtime, world.queues[LOST], pushed.first_id
    one = Selection(ids=(first_id,))
    for call in (
        world.push(LOST, level=AckLevel.MEMORY),
        world.pull(LOST),
        world.pull(LOST, wait_ms=20_000),
        runtime.jobs.get_job(first_id),
        runtime.explainer.explain_job(first_id),
        runtime.settle_calls.ack([first_id], [1], {}),
        runtime.settle_calls.fail([FailItem(first_id, 1, JobError())]),
        runtime.settle_calls.release([ReleaseItem(first_id, 1)]),
        runtime.settle_calls.extend([ExtendItem(first_id, 1)]),
        runtime.queues.pause_queue(queue, Audit()),
        runtime.bulk.cancel_jobs(one, dry_run=False, audit=Audit()),
        runtime.bulk.cancel_jobs(one, dry_run=True, audit=Audit()),
        anext(runtime.waits.wait([first_id], 20_000)),
    ):
        await refused(call)
    await goes_on(world)


async def test_a_pull_and_a_list_over_several_shards_give_what_is_here(world: World) -> None:
    """A worker of two queues goes on with one of them."""
    ids = [(await world.push(shard)).first_id for shard in range(SHARDS)]
    await world.lose()
    leased = leases_of(runs_of(await world.pull(*range(SHARDS))))
    assert [job_id for job_id, _ in leased] == [ids[0], ids[OTHER]]
    listed, _ = await world.runtime.jobs.list_jobs(
        JobFilter(), page_size=10, page_token="", include_payloads=False
    )
    assert [view.id for view in listed] == [ids[0], ids[OTHER]]


async def test_a_lost_shard_shows_in_health_statistics_and_one_log_line(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The server still works, so it stays ready."""
    changed = asyncio.Event()
    world.runtime.core.loops.changed = changed.set
    await world.lose()
    assert changed.is_set()
    (line,) = world.runtime.failing()
    assert line.startswith("shard 1 is not served any more (fenced): the row of shard 1 has")
    assert world.runtime.broken() == []
    shards = {view.shard: view for view in (await world.runtime.statistics.of_server()).shards}
    assert sorted(shards) == [0, LOST, OTHER]
    assert [bool(shards[shard].problem) for shard in range(SHARDS)] == [False, True, False]
    critical = [one for one in caplog.records if one.levelno == logging.CRITICAL]
    assert ["a shard is lost" in one.getMessage() for one in critical] == [True]


async def test_what_a_lost_shard_held_weighs_on_the_server_no_more(world: World) -> None:
    """Its jobs would take the room of others for good."""
    await world.push(OTHER)
    load = world.runtime.core.load
    before = (load.live_jobs, load.active_jobs, load.payload_bytes, load.keys)
    await world.push(LOST, count=5)
    await world.a_lease(LOST)
    await world.lose()
    assert (load.live_jobs, load.active_jobs, load.payload_bytes, load.keys) == before


async def test_totals_keep_what_a_lost_shard_has_counted(world: World) -> None:
    """For Prometheus a total that falls is a restart of the server."""
    await world.push(OTHER)
    await world.push(LOST, count=5)
    job_id, delivery = await world.a_lease(LOST)
    await world.runtime.settle_calls.ack([job_id], [delivery], {})
    before = await world.runtime.statistics.of_server()
    await world.lose()
    after = await world.runtime.statistics.of_server()
    assert (before.pushed_total, before.completed_total, after.completed_total) == (7, 1, 1)
    assert after.pushed_total >= before.pushed_total


async def test_timers_and_checkpoints_of_a_lost_shard_stop(world: World) -> None:
    """It is not ours to write any more."""
    clock = world.runtime.core.clock
    assert isinstance(clock, ManualClock)
    due_ms = clock.wall_ms + 1_000
    ids = [(await world.push(shard, run_at_ms=due_ms)).first_id for shard in range(SHARDS)]
    lost = world.runtime.core.slots[LOST].shard
    await world.lose()
    clock.advance(2_000)
    world.runtime.timer_loop.run_due()
    assert lost.state_of(ids[LOST]) is JobState.SCHEDULED
    assert (await world.runtime.jobs.get_job(ids[OTHER])).state is JobState.READY
    assert await world.runtime.checkpoints.take_due(everything=True) == SHARDS - 1


async def test_the_process_stops_when_no_shard_is_left(tmp_path: Path) -> None:
    """A server without a shard is of no use; its supervisor starts it again."""
    async with a_world(tmp_path, shards=1) as world:
        await world.fence(0)
        await refused(world.push(0))
        await a_moment()
        assert isinstance(world.runtime.failed.exception(), Fenced)
        assert world.runtime.broken() == ["the storage failed"]


async def test_what_was_acknowledged_is_there_after_a_restart(tmp_path: Path) -> None:
    """Of the lost shard, too; what was refused is not."""
    async with a_world(tmp_path) as world:
        ids = [(await world.push(shard)).first_id for shard in range(SHARDS)]
        await world.lose()
        last = await world.push(OTHER)
    async with a_world(tmp_path) as world:
        slots = world.runtime.core.slots
        assert [[*slot.shard.lots.lots] for slot in slots] == [
            [ids[0]],
            [ids[LOST]],
            [ids[OTHER], last.first_id],
        ]


async def test_a_change_by_filter_is_refused_if_a_shard_was_lost_meanwhile(world: World) -> None:
    """What it did there is void; what it did elsewhere is done."""
    for shard in range(SHARDS):
        await world.push(shard, count=2)
    await world.fence()
    act = world.runtime.bulk.cancel_jobs
    await refused(act(Selection(filter=JobFilter()), dry_run=False, audit=Audit()))
    done = await act(Selection(filter=JobFilter()), dry_run=False, audit=Audit())
    assert done.count == 0
    counts = world.runtime.queues.get_queue(world.queues[OTHER]).counts
    assert counts[JobState.CANCELLED] == 2


async def test_what_the_server_does_by_itself_passes_over_a_lost_shard(world: World) -> None:
    """Ended jobs of its queues stay in their file as they are."""
    runtime, spans = world.runtime, []
    for shard in (LOST, OTHER):
        job_id, delivery = await world.a_lease(shard)
        await runtime.settle_calls.ack([job_id], [delivery], {})
        spans.append(EndedSpan(world.queues[shard], JobState.COMPLETED, job_id, 1))
    await world.lose()
    assert await runtime.ended.delete(spans) == 1
    assert await delete_idle_queues(runtime.core) == 0


async def test_a_decision_on_a_shard_that_was_lost_a_moment_ago_is_void(world: World) -> None:
    """It was found before, and a call that changes many jobs lets the loop go on in between."""
    slot = world.runtime.core.slots[LOST]
    pushed = await world.push(LOST)
    await world.lose()
    decide_cancel(slot.shard, world.runtime.core.now(), [pushed.first_id])
    with pytest.raises(Refused, match="shard 1 is not served here any more"):
        world.runtime.core.after_decision(slot)
    await refused(world.runtime.core.commits.wait(slot))
    await world.runtime.core.commits.wait()


async def test_what_a_lost_shard_held_is_memory_again(world: World) -> None:
    """Neither waiting callers, nor leases, nor lists keep it."""
    await world.push(LOST, count=5)
    await world.a_lease(LOST)
    shard = ref(world.runtime.core.slots[LOST].shard)
    await world.lose()
    await a_moment()
    collect()
    assert shard() is None


async def test_a_listener_that_fails_keeps_no_other_from_hearing_of_a_lost_shard(
    world: World,
) -> None:
    """Callers would wait for good."""
    core, heard = world.runtime.core, list[int]()

    def fails(_slot: ShardSlot) -> None:
        raise LookupError("a mistake of ours")

    core.listen_closed("bad", fails)
    core.listen_closed("good", lambda slot: heard.append(slot.number))
    await world.lose()
    assert (heard, core.loops.record("bad").failures) == ([LOST], 1)


@pytest.mark.parametrize("what", ["queue", "job"])
async def test_a_watcher_of_nothing_else_is_refused_after_the_last_events_of_a_lost_shard(
    world: World, what: str
) -> None:
    """It would wait for good; one that watches another queue as well goes on."""
    lost, other = world.queues[LOST], world.queues[OTHER]
    await world.push(LOST)
    job_id = world.runtime.core.slots[LOST].shard.next_id()
    only = WatchFilter(job_id=job_id) if what == "job" else WatchFilter(frozenset({lost}))
    watches = [
        world.runtime.feed.watch(wanted, "", room=Room.RUNS)
        for wanted in (only, WatchFilter(frozenset({lost, other})))
    ]
    for watch in watches:
        await anext(watch)
    news = [asyncio.ensure_future(anext(watch)) for watch in watches]
    await a_moment()
    assert (await world.push(LOST)).first_id == job_id
    assert (await news[0]).parts
    await world.lose()
    await refused(anext(watches[0]))
    await news[1]
    await world.push(OTHER)
    assert (await anext(watches[1])).parts
