"""Random lives over a socket, with all options together, batches, schedules and undos among them:
every call is answered, or refused with a definite code; what the server holds adds up, and is the
same after a restart.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from random import Random
from shutil import copytree
from typing import Any

import pytest

from jobline_server.engine import invariants
from jobline_server.engine.operations import Operation, OperationQuery
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import RunningServer, running_server
from tests.server.conftest import connect, until
from tests.server.lives import Life
from tests.server.other_lives import OtherLife
from tests.server.stream_lives import StreamWorker
from tests.shard_image import counting_at, image_of

# Calls of one life, between two looks at all of it, and looks.
CALLS = 60
LOOKS = 4
# As many lives as there is time for: LIVES=200.
LIVES = int(os.environ.get("LIVES", "8"))
SHARDS = (1, 3)


@pytest.mark.parametrize("seed", range(LIVES))
async def test_a_life_of_all_options(
    tmp_path: Path, transport: str, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing that a caller may ask for breaks the server, or what it stores."""
    random, clock = Random(seed), ManualClock()
    data, crashed = tmp_path / "data", tmp_path / "crashed"
    shards = SHARDS[seed % len(SHARDS)]
    async with running_server(data, transport=transport, clock=clock, shards=shards) as server:
        async with connect(server.address) as channel:
            life, worker = Life(random, channel), StreamWorker(random, channel)
            others = OtherLife(random, life)
            for _ in range(LOOKS):
                await _live(life, worker, random, server)
            await _all_stored(server)
            await others.check()
        await _all_stored(server)
        before, operations = _images(server), await _operations(server)
        # What a crash at this moment would leave behind.
        copytree(data, crashed)
    assert life.codes.get("Push OK")
    assert life.codes.get("Pull OK")
    for left_behind in (data, crashed):
        async with running_server(left_behind, transport=transport, clock=clock) as server:
            _check(server)
            after = _images(server)
            assert await _operations(server) == operations, left_behind.name
        for one_before, one_after in zip(before, after, strict=True):
            for part, value in one_before.items():
                assert one_after[part] == value, (left_behind.name, part)
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


async def _live(life: Life, worker: StreamWorker, random: Random, server: RunningServer) -> None:
    for _ in range(CALLS):
        await life.step()
        if random.random() < 0.05:
            await worker.live()
        if random.random() < 0.2:
            server.advance(random.choice([100, 1_500, 40_000]))
    _check(server)


def _images(server: RunningServer) -> list[dict[str, Any]]:
    """Returns what counts of each shard: what has expired may be forgotten at any time."""
    core = server.runtime.core
    shards = [slot.shard for slot in core.slots]
    return [counting_at(image_of(shard), shard.age.at(core.now())) for shard in shards]


def _check(server: RunningServer) -> None:
    shards = [slot.shard for slot in server.runtime.core.slots]
    # What all shards count together has no invariant of one of them.
    if len(shards) == 1:
        invariants.check(shards[0])


async def _operations(server: RunningServer) -> list[Operation]:
    """Returns what operators did, the last first."""
    found, has_more = await server.runtime.operations.find(OperationQuery(limit=1_000))
    assert not has_more
    return [view.operation for view in found]


async def _all_stored(server: RunningServer) -> None:
    """Returns once nothing waits for a commit, and no message is under way between shards."""
    slots = [*server.runtime.core.slots]
    await until(lambda: not any(slot.shard.messages.outboxes for slot in slots))
    for slot in slots:
        await server.runtime.core.commits.wait(slot)
