"""Workers of a shard that was lost: they hear of it, and go on with what is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobline_server.dispatch.frames import Open, Settle, Window, Worker, WorkerFrame
from jobline_server.engine.commands import ExtendItem, FailItem, Refused
from jobline_server.engine.values import JobError, JobState, RevokeReason, SettleOutcome
from jobline_server.runtime.calls.worker_stream import WorkerStream
from jobline_server.runtime.views import Audit
from tests.unit.runtime.shard_faults import (
    LOST,
    OTHER,
    World,
    a_moment,
    a_world,
    refused,
)

LEASE_LOST = SettleOutcome.LEASE_LOST


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as one:
        yield one


async def a_stream(world: World, *shards: int, jobs: int) -> WorkerStream:
    """A worker's stream over queues, with so many jobs of each in flight."""
    for shard in shards:
        await world.push(shard, count=jobs)
    queues = tuple((world.queues[shard], 1) for shard in shards)
    stream = world.runtime.streams.open_stream(Open(Worker("w"), queues))
    stream.receive(WorkerFrame(window=Window(jobs * len(shards))))
    assert await stream.next_frame() is not None
    assert stream.session.in_flight.jobs == jobs * len(shards)
    return stream


async def test_leases_on_a_lost_shard_are_revoked_and_their_place_in_the_window_is_free(
    world: World,
) -> None:
    """The worker goes on with jobs of the other shard."""
    stream = await a_stream(world, LOST, OTHER, jobs=3)
    mine = {lease for holder in stream.holders.values() for lease in holder.held()}
    await world.lose()
    frame = await stream.next_frame()
    assert frame is not None
    revoked = {(job_id, delivery) for job_id, delivery, _ in frame.revokes}
    assert {reason for _, _, reason in frame.revokes} == {RevokeReason.LEASE_LOST}
    assert revoked == {lease for lease in mine if lease[0] >> 43 == LOST}
    await a_moment()
    assert stream.session.in_flight.jobs == 3
    await world.push(OTHER, count=3)
    await a_moment()
    assert stream.session.in_flight.jobs == 6


async def test_settles_of_a_frame_are_answered_by_shard(world: World) -> None:
    """Those that were fenced were not stored: their leases are lost. The others are done."""
    stream = await a_stream(world, LOST, OTHER, jobs=1)
    leases = sorted(lease for holder in stream.holders.values() for lease in holder.held())
    ids, deliveries = [job_id for job_id, _ in leases], [delivery for _, delivery in leases]
    await world.fence()
    fail = FailItem(*leases[0], JobError())
    stream.receive(WorkerFrame(settles=[Settle(1, ids, deliveries, {}), Settle(2, fails=[fail])]))
    confirms: dict[int, list[tuple[int, SettleOutcome]]] = {}
    while len(confirms) < 2:
        frame = await stream.next_frame()
        assert frame is not None
        confirms.update({confirm.seq: confirm.exceptions for confirm in frame.confirms})
    assert confirms == {1: [(0, LEASE_LOST)], 2: [(0, LEASE_LOST)]}
    assert (await world.runtime.jobs.get_job(ids[1])).state is JobState.COMPLETED
    assert stream._confirms.pending == 0


async def test_a_stream_ends_when_no_queue_of_it_is_here_and_cannot_be_opened_again(
    world: World,
) -> None:
    """Its worker looks for a server that has them."""
    stream, both = await a_stream(world, LOST, jobs=1), await a_stream(world, LOST, OTHER, jobs=1)
    await world.lose()
    await a_moment()
    while await stream.next_frame() is not None:
        pass
    with pytest.raises(Refused, match="shard 1 is not served here any more"):
        world.runtime.streams.open_stream(stream.session.open)
    assert list(world.runtime.streams.open.values()) == [both]
    assert world.runtime.streams.open_stream(both.session.open) is not None


async def test_unary_settles_of_a_lost_shard_are_refused_and_those_of_several_are_told_apart(
    world: World,
) -> None:
    """A call with jobs of a shard that is here does what it can."""
    lost, other = await world.a_lease(LOST), await world.a_lease(OTHER)
    calls = world.runtime.settle_calls
    await world.fence()
    alone = asyncio.ensure_future(calls.ack([lost[0]], [lost[1]], {}))
    both = asyncio.ensure_future(calls.ack([lost[0], other[0]], [lost[1], other[1]], {}))
    await refused(alone)
    assert await both == [(0, LEASE_LOST)]
    again = await calls.ack([lost[0], other[0]], [lost[1], other[1]], {})
    assert again == [(0, LEASE_LOST), (1, SettleOutcome.ALREADY_DONE)]


async def test_callers_that_wait_for_jobs_of_a_lost_shard_are_refused(world: World) -> None:
    """Long polls and waits; a pull that waits for another shard as well goes on."""
    clock = world.runtime.core.clock
    pushed = await world.push(LOST, run_at_ms=clock.now().wall_ms + 60_000)
    wait = asyncio.ensure_future(anext(world.runtime.waits.wait([pushed.first_id], 20_000)))
    pull = asyncio.ensure_future(world.pull(LOST, wait_ms=20_000))
    both = asyncio.ensure_future(world.pull(LOST, OTHER, wait_ms=20_000))
    await a_moment()
    await world.fence()
    await refused(world.runtime.queues.pause_queue(world.queues[LOST], Audit()))
    await refused(wait)
    await refused(pull)
    await world.push(OTHER)
    assert (await both).count() == 1


async def test_an_extend_of_a_lost_lease_and_of_another_extends_the_other(world: World) -> None:
    """Each outcome at its index; without the other the call is refused, as it works elsewhere."""
    lost, kept = await world.a_lease(LOST), await world.a_lease(OTHER)
    await world.lose()
    items = [ExtendItem(*lease, 60_000) for lease in (kept, lost)]
    extend = world.runtime.settle_calls.extend
    assert await extend(items) == [(1, LEASE_LOST)]
    view = await world.runtime.jobs.get_job(kept[0])
    assert view.lease_until_ms == world.runtime.core.wall_ms() + 60_000
    await refused(extend(items[1:]))
