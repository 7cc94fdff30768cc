"""Checkpoints that find out that a shard is lost, in each of their steps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobline_server.engine.values import AckLevel
from jobline_server.runtime.health import Health
from jobline_server.storage.store import CommitUnknown, Fenced
from tests.unit.runtime.shard_faults import LOST, OTHER, SHARDS, World, a_world, goes_on


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Each shard has a journal to fold."""
    async with a_world(tmp_path) as one:
        for shard in range(SHARDS):
            await one.push(shard)
        yield one


class Failing:
    """A call of the store that fails for one shard."""

    def __init__(self, world: World, step: str, failure: Exception) -> None:
        self._work = getattr(world.runtime.core.store, step)
        self._failure = failure

    async def __call__(self, shard: int, *arguments: object) -> object:
        if shard == LOST:
            raise self._failure
        return await self._work(shard, *arguments)


@pytest.mark.parametrize("step", ["finish_checkpoint", "truncate"])
@pytest.mark.parametrize("health", [Health.FENCED, Health.UNKNOWN])
async def test_a_step_that_fails_for_a_shard_closes_that_one(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str, health: Health
) -> None:
    """The others are folded."""
    kind = Fenced if health is Health.FENCED else CommitUnknown
    failing = Failing(world, step, kind("another process has it", shards=(LOST,)))
    monkeypatch.setattr(world.runtime.core.store, step, failing)
    await world.runtime.checkpoints.take_due(everything=True)
    assert world.runtime.core.slots.closed[LOST].health is health
    assert [slot.position.generation for slot in world.runtime.core.slots] == [1, 1]
    await goes_on(world)


async def test_a_shard_that_is_lost_to_the_commit_of_its_checkpoint_is_not_folded(
    world: World,
) -> None:
    """What was cut in that step was not stored."""
    await world.fence()
    for shard in range(SHARDS):
        await world.push(shard, level=AckLevel.BUFFERED)
    await world.runtime.checkpoints.take_due(everything=True)
    assert world.here == [0, OTHER]
    await goes_on(world)


@pytest.mark.parametrize("step", ["finish_checkpoint", "commit"])
async def test_a_failure_that_names_no_shard_stops_the_process(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """What the disk holds is not known, of none of them."""

    async def fail(*_arguments: object) -> None:
        raise CommitUnknown("EIO")

    await world.push(LOST, level=AckLevel.BUFFERED)
    monkeypatch.setattr(world.runtime.core.store, step, fail)
    await world.runtime.checkpoints.take_due(everything=True)
    assert isinstance(world.runtime.failed.exception(), CommitUnknown)


async def test_the_process_stops_when_a_checkpoint_finds_the_last_shard_lost(
    tmp_path: Path,
) -> None:
    """As when a commit does."""
    async with a_world(tmp_path, shards=1) as world:
        await world.push(0)
        await world.fence(0)
        await world.runtime.checkpoints.take_due(everything=True)
        assert isinstance(world.runtime.failed.exception(), Fenced)
