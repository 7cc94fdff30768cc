"""When all jobs of a life with all options together are done, nothing is held of any of them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from random import Random
from typing import Any

import pytest

from jobline_server.engine.load import Load
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import RunningServer, running_server
from tests.server.all_options import GROUPS, QUEUES
from tests.server.conftest import connect, until
from tests.server.lives import Life
from tests.server.stream_lives import StreamWorker
from tests.server.test_lives import LIVES, SHARDS

CALLS = 200
# As long as a window of keys, and as a throttle of a unique key may be.
DAY_MS = 24 * 3_600_000
ROUNDS_MAX = 100
LIVE = (JobState.SCHEDULED, JobState.BLOCKED, JobState.READY, JobState.ACTIVE)


@pytest.mark.parametrize("seed", range(LIVES))
async def test_g6_g11_g13_g14_and_g19_nothing_is_held_once_all_is_done(
    tmp_path: Path, seed: int
) -> None:
    """No slot, token, group, key or proof of an end; and the counts say that there are no jobs."""
    random = Random(1_000 + seed)
    shards = SHARDS[seed % len(SHARDS)]
    async with running_server(tmp_path, clock=ManualClock(), shards=shards) as server:
        async with connect(server.address) as channel:
            life = Life(random, channel)
            worker = StreamWorker(random, channel)
            for _ in range(CALLS):
                await life.step()
                if random.random() < 0.05:
                    await worker.live()
                if random.random() < 0.2:
                    server.advance(random.choice([100, 1_500, 40_000]))
            await _drain(life, worker, server)
        for _ in range(3):
            server.advance(DAY_MS)
            await _all_stored(server)
        slots = [*server.runtime.core.slots]
        assert [_held(slot.shard) for slot in slots] == [{}] * shards
        load = server.runtime.core.load
        with_settings = sum(len(slot.shard.group_records) for slot in slots)
        assert _counts(load) == dict.fromkeys(_counts(load), 0) | {"groups": with_settings}
        for limiter in load.limiters.by_name.values():
            assert (limiter.active, len(limiter.line)) == (0, 0)
            bucket = limiter.allowance.bucket
            assert bucket is None or bucket.is_full(server.runtime.core.now().mono_ms)


async def _drain(life: Life, worker: StreamWorker, server: RunningServer) -> None:
    """Lets everything go on, and does all jobs that come."""
    for queue in QUEUES:
        await life.call("QueueService/ResumeQueue", queue=queue)
        for group in GROUPS:
            await life.call("QueueService/ResumeGroup", queue=queue, group=group)
    for _ in range(ROUNDS_MAX):
        await worker.work_off()
        server.advance(700_000)
        for queue in QUEUES:
            # What waits for a dead or cancelled job, or behind it, goes on.
            purged: dict[str, Any] = {"filter": {"queue": queue}, "all": True}
            await life.call("DeadLetterService/PurgeDeadJobs", **purged)
            await life.call("QueueService/CleanQueue", queue=queue, states=[7, 8, 9])
        await _all_stored(server)
        if not server.runtime.core.load.live_jobs:
            return
    shards = [slot.shard for slot in server.runtime.core.slots]
    pytest.fail(f"it does not drain: {[_held(shard) for shard in shards]}")


async def _all_stored(server: RunningServer) -> None:
    """Returns once nothing waits for a commit, and no message is under way between shards."""
    slots = [*server.runtime.core.slots]
    await until(lambda: not any(slot.shard.messages.outboxes for slot in slots))
    for slot in slots:
        await server.runtime.core.commits.wait(slot)


def _held(shard: Shard) -> dict[str, Any]:
    """Returns what a shard holds of jobs, by where."""
    unique, dependencies, clocks = shard.unique, shard.dependencies, shard.clocks
    held: dict[str, Any] = {
        "jobs": [*shard.jobs],
        "lots": [*shard.lots.lots],
        "keys": len(shard.keys.records),
        "unique keys": unique.held or len(unique.holders) or len(unique.parked),
        "throttles": len(unique.throttled.records),
        "ends of parents": [*dependencies.awaited],
        "children": dependencies.edges,
        "leases": [one.worker for one in clocks.holders.values() if one.in_flight.jobs],
        "outboxes": [*shard.messages.outboxes],
        "tokens of groups": len(shard.group_rates),
    }
    for name, queue in shard.queues.items():
        held[f"live jobs of {name}"] = sum(queue.counts[state] for state in LIVE)
        held[f"groups of {name}"] = [one.name for one in queue.groups if not one.number]
        held[f"jobs of groups of {name}"] = [one.name for one in queue.groups if one.live]
        held[f"held back in {name}"] = queue.groups.held
    return {where: what for where, what in held.items() if what}


def _counts(load: Load) -> dict[str, int]:
    names = [field.name for field in fields(Load) if field.compare]
    return {name: getattr(load, name) for name in names if not name.endswith(("_max", "_kept_ms"))}
