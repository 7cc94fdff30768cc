"""Fair queues over a real server: tenants share workers, also after a restart."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from jobline import (
    AsyncClient,
    GroupSettings,
    InvalidArgument,
    JoblineError,
    ObstacleKind,
)
from jobline_server.testing import running_server


async def test_slow_jobs_of_one_tenant_do_not_delay_another(client: AsyncClient) -> None:
    """G23: hundreds wait, all workers are busy with them, and ten of another are done at once."""
    await client.queues.update("work", fair=True)
    for _ in range(3):
        await client.push_payloads("work", [b"slow"] * 100, group="big")
    held = await client.pull("work", max_jobs=20)
    assert {job.group for job in held} == {"big"}
    await client.push_payloads("work", [b"quick"] * 10, group="small")
    done: Counter[str] = Counter()
    for _ in range(10):
        (job,) = await client.pull("work", wait=5)
        done[job.group] += 1
        await client.ack(job)
    assert done["small"] == 10
    groups = {group.group: group async for group in client.queues.groups.list("work")}
    assert (groups["big"].ready, groups["big"].active, groups["big"].weight) == (280, 20, 1)
    assert groups["big"].worker_time is not None
    queue = await client.queues.get("work")
    assert queue.worker_time is not None
    assert queue.worker_time >= groups["big"].worker_time


async def test_fairness_outlives_the_process(tmp_path: Path) -> None:
    """Settings are durable; worker time begins anew, and what runs counts."""
    async with running_server(tmp_path) as server, AsyncClient(server.address) as client:
        await client.queues.update("work", fair=True, group=GroupSettings(weight=2))
        await client.queues.groups.update("work", "heavy", weight=6)
        await client.push_payloads("work", [b"x"] * 60, group="heavy")
        await client.push_payloads("work", [b"x"] * 60, group="light", priority=3)
        await client.push_payloads("work", [b"x"] * 60)
        await client.pull("work", max_jobs=30)
    async with running_server(tmp_path) as server, AsyncClient(server.address) as client:
        settings = (await client.queues.get("work")).settings
        assert (settings.fair, settings.group) == (True, GroupSettings(weight=2))
        pulled = Counter(job.group for job in await client.pull("work", max_jobs=50))
        held = {group.group: group async for group in client.queues.groups.list("work")}
        assert (held["heavy"].weight, held["light"].weight) == (6, 2)
        assert held["heavy"].active == 48
        assert held["light"].active == pulled[""] + 6


async def test_explain_tells_of_other_tenants(client: AsyncClient) -> None:
    await client.queues.update("work", fair=True)
    await client.push_payloads("work", [b"x"] * 5, group="one")
    (job,) = await client.pull("work")
    assert job.group == "one"
    await client.push("work", b"x", group="other")
    mine = await client.push("work", b"x", group="one")
    found = (await client.jobs.explain(mine.id)).obstacles
    assert ObstacleKind.OTHER_TENANTS in [one.kind for one in found]


async def test_priorities_are_for_tenants_and_not_for_serial_groups(client: AsyncClient) -> None:
    with pytest.raises(InvalidArgument, match="unless queue work is fair"):
        await client.push("work", b"x", group="a", priority=1)
    await client.queues.update("work", fair=True)
    low = await client.push("work", b"x", group="a")
    high = await client.push("work", b"x", group="a", priority=1)
    assert [job.id for job in await client.pull("work", max_jobs=2)] == [high.id, low.id]


async def test_a_queue_is_switched_while_jobs_wait(client: AsyncClient) -> None:
    """And refused while there are too many to move at once."""
    await client.push_payloads("work", [b"x"] * 5, group="a")
    assert len(await client.pull("work", max_jobs=9)) == 1
    await client.queues.update("work", fair=True)
    assert len(await client.pull("work", max_jobs=9)) == 4
    for _ in range(20):
        await client.push_payloads("work", [b"x"] * 1_000, group="b")
    with pytest.raises(JoblineError, match="more than 20,000 live jobs"):
        await client.queues.update("work", fair=False)
