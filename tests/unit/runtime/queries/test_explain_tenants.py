"""Why a job of a fair queue waits: its tenant, or other tenants."""

from __future__ import annotations

import pytest

from jobline_server.engine.decide.groups import decide_pause_group, decide_update_group
from jobline_server.engine.decide.queues import decide_update_queue
from jobline_server.engine.decide.update import JobChange, decide_update
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.engine.values import QueueSettings
from jobline_server.runtime.obstacles import Obstacle, ObstacleKind
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.calls.test_groups import pushed
from tests.unit.runtime.commits.test_commits import a_pull

OF_TENANTS = {
    ObstacleKind.GROUP_PAUSED,
    ObstacleKind.GROUP_BUSY,
    ObstacleKind.OTHER_TENANTS,
    ObstacleKind.JOBS_AHEAD,
}


@pytest.fixture
def fair(runtime: Runtime) -> Runtime:
    """A runtime with a fair queue."""
    core = runtime.core
    shard = core.slots.of_queue("q").shard
    decide_update_queue(shard, core.now(), "q", QueueSettings(fair=True), None)
    return runtime


async def told(runtime: Runtime, job_id: int) -> list[Obstacle]:
    _, obstacles = await runtime.explainer.explain_job(job_id)
    return [one for one in obstacles if one.kind in OF_TENANTS]


async def test_job_is_told_how_many_of_its_tenant_go_first(fair: Runtime) -> None:
    """Those of others are not counted one by one: who is next changes with each hand-out."""
    first_id = await pushed(fair, "g", "g", "h", "")
    assert await told(fair, first_id) == []
    (obstacle,) = await told(fair, first_id + 1)
    assert (obstacle.kind, obstacle.count) == (ObstacleKind.JOBS_AHEAD, 1)
    assert await told(fair, first_id + 2) == []
    assert await told(fair, first_id + 3) == []


async def test_job_is_told_that_other_tenants_come_first(fair: Runtime) -> None:
    first_id = await pushed(fair, "g", "h", "")
    await a_pull(fair, "q", max_jobs=1)
    await pushed(fair, "g")
    (obstacle,) = await told(fair, first_id + 3)
    assert (obstacle.kind, obstacle.count) == (ObstacleKind.OTHER_TENANTS, 2)
    assert obstacle.message == "2 groups have used less worker time for their weight"
    await a_pull(fair, "q", max_jobs=1)
    (obstacle,) = await told(fair, first_id + 3)
    assert "1 group, or the jobs without one, has used less" in obstacle.message


async def test_job_is_told_that_its_tenant_has_as_many_as_may_run(fair: Runtime) -> None:
    first_id = await pushed(fair, "g", "g")
    core = fair.core
    shard = core.slots.of_queue("q").shard
    decide_update_group(shard, core.now(), "q", "g", GroupSettings(concurrency=1), None)
    await core.commits.commit_once()
    await a_pull(fair, "q", max_jobs=1)
    (obstacle,) = await told(fair, first_id + 1)
    assert obstacle.message == "1 of its group are active, as many as may be"


async def test_job_is_told_who_paused_its_tenant(fair: Runtime) -> None:
    first_id = await pushed(fair, "g")
    core = fair.core
    decide_pause_group(core.slots.of_queue("q").shard, core.now(), "q", "g", "ann", "why")
    (obstacle,) = await told(fair, first_id)
    assert obstacle.message == "group g is paused by ann: why"


async def test_jobs_of_higher_priority_of_its_tenant_go_first(fair: Runtime) -> None:
    first_id = await pushed(fair, "g", "h", "g")
    core = fair.core
    shard = core.slots.of_queue("q").shard
    decide_update(shard, core.now(), first_id, JobChange(priority=-1))
    await core.commits.commit_once()
    (obstacle,) = await told(fair, first_id)
    assert (obstacle.kind, obstacle.count) == (ObstacleKind.JOBS_AHEAD, 1)
