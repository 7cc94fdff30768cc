"""Commits of which nobody knows whether they are stored: the store is asked, shard by shard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobline_server.engine.commands import Refused
from jobline_server.engine.values import SettleOutcome
from jobline_server.runtime.commits import failed_writes
from jobline_server.runtime.health import Health
from jobline_server.storage.store import CommitUnknown, Fenced, JournalRow
from tests.unit.runtime.shard_faults import (
    LOST,
    OTHER,
    SHARDS,
    World,
    a_world,
    goes_on,
    refused,
)

LEASE_LOST = SettleOutcome.LEASE_LOST


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(failed_writes, "RETRY_SECONDS", 0)
    async with a_world(tmp_path) as one:
        yield one


@pytest.mark.parametrize("stored", [True, False])
async def test_an_unknown_commit_is_resolved_by_the_store_and_goes_on(
    world: World, *, stored: bool
) -> None:
    """As committed if it was stored; the same rows are written again if it was not."""
    world.let_resolve()
    world.leave_unknown(stored=stored)
    pushes = await asyncio.gather(*map(world.push, range(SHARDS)))
    assert [pushed.count for pushed in pushes] == [1] * SHARDS
    slots = world.runtime.core.slots
    assert [slot.health for slot in slots] == [Health.OPEN] * SHARDS
    await goes_on(world, LOST)
    await goes_on(world)


async def test_an_unknown_commit_of_a_shard_that_others_took_is_fenced(world: World) -> None:
    """The store says so when it is asked."""
    world.let_resolve()
    world.leave_unknown(stored=False)
    await world.fence()
    pushes = [asyncio.ensure_future(world.push(shard)) for shard in range(SHARDS)]
    await refused(pushes[LOST])
    assert (await pushes[OTHER]).count == 1
    assert world.runtime.core.slots.closed[LOST].health is Health.FENCED


async def test_a_commit_that_stays_unknown_closes_the_shards_that_it_names(world: World) -> None:
    """Nobody may be answered from memory that the disk may not have; the others may."""
    world.leave_unknown(stored=True)
    pushes = [asyncio.ensure_future(world.push(shard)) for shard in range(SHARDS)]
    await refused(pushes[LOST])
    assert (await pushes[OTHER]).count == 1
    assert world.runtime.core.slots.closed[LOST].health is Health.UNKNOWN
    await goes_on(world)


async def test_an_unknown_commit_that_names_no_shard_stops_the_process(world: World) -> None:
    """So it is with SQLite: one file has all shards, and nobody can be asked what is in it."""
    world.leave_unknown(stored=True, named=False)
    pushes = [asyncio.ensure_future(world.push(shard)) for shard in range(SHARDS)]
    for push in pushes:
        with pytest.raises(Refused, match="the server stops"):
            await push
    assert isinstance(world.runtime.failed.exception(), CommitUnknown)


async def test_a_row_that_turned_out_not_to_be_stored_is_not_tried_again_by_a_stop(
    world: World,
) -> None:
    """Nobody was told of it, and a supervisor may wait for the process."""
    world.let_resolve()
    world.leave_unknown(stored=False)
    push = asyncio.ensure_future(world.push(LOST))
    await asyncio.sleep(0)
    world.runtime.core.commits.close()
    with pytest.raises(Refused, match="the server stops"):
        await push
    assert isinstance(world.runtime.failed.exception(), CommitUnknown)


@pytest.mark.parametrize("stored", [True, False])
async def test_what_was_resolved_is_there_after_a_restart(tmp_path: Path, *, stored: bool) -> None:
    """Once, and with what came after it."""
    async with a_world(tmp_path) as world:
        world.let_resolve()
        world.leave_unknown(stored=stored)
        pushes = await asyncio.gather(*map(world.push, range(SHARDS)))
        last = await world.push(LOST)
    async with a_world(tmp_path) as world:
        lots = [[*slot.shard.lots.lots] for slot in world.runtime.core.slots]
        first = [pushed.first_id for pushed in pushes]
        assert lots == [[first[0]], [first[LOST], last.first_id], [first[OTHER]]]


async def test_a_fence_that_names_no_row_of_the_commit_stops_the_process(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which row was kept out is not known then."""

    async def fenced(*_arguments: object) -> None:
        raise Fenced("somewhere else", shards=(OTHER,))

    monkeypatch.setattr(world.runtime.core.store, "commit", fenced)
    with pytest.raises(Refused, match="the server stops"):
        await world.push(LOST)
    assert isinstance(world.runtime.failed.exception(), Fenced)


async def test_a_shard_that_was_closed_meanwhile_is_not_asked_about(world: World) -> None:
    """A checkpoint may have found out before."""
    slots, row = world.runtime.core.slots, JournalRow(LOST, 1, 1, 0, 0, b"")
    slots.close(slots[LOST], Health.FENCED, "a checkpoint was fenced")
    unknown = CommitUnknown("the line is dead", shards=(LOST,))
    assert await world.runtime.core.commits.failed_writes.rows_left([row], unknown) == []
