"""Why a job waits in its group."""

from __future__ import annotations

from jobline_server.engine.commands import FailItem
from jobline_server.engine.decide.group_limits import decide_limit_group
from jobline_server.engine.decide.groups import decide_pause_group, decide_update_group
from jobline_server.engine.decide.settle import decide_fail
from jobline_server.engine.group_settings import GroupSettings, OnDeadHead
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.values import FailAction, JobError
from jobline_server.runtime.obstacles import Obstacle, ObstacleKind
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.calls.test_groups import pushed
from tests.unit.runtime.commits.test_commits import a_pull

OF_GROUPS = {
    ObstacleKind.RATE_LIMITED,
    ObstacleKind.LIMITED_FOR_A_TIME,
    ObstacleKind.GROUP_PAUSED,
    ObstacleKind.GROUP_HELD,
    ObstacleKind.GROUP_BUSY,
}


async def of_group(runtime: Runtime, job_id: int) -> list[Obstacle]:
    _, obstacles = await runtime.explainer.explain_job(job_id)
    return [one for one in obstacles if one.kind in OF_GROUPS]


async def test_job_is_told_how_many_of_its_group_go_first(runtime: Runtime) -> None:
    """The next one is told nothing by its group."""
    first_id = await pushed(runtime, "g", "g", "h", "g")
    assert await of_group(runtime, first_id) == []
    assert await of_group(runtime, first_id + 2) == []
    (told,) = await of_group(runtime, first_id + 1)
    assert told.message == "1 job of its group goes before it"
    (told,) = await of_group(runtime, first_id + 3)
    assert (told.message, told.count) == ("2 jobs of its group go before it", 2)


async def test_job_is_told_who_paused_its_group(runtime: Runtime) -> None:
    first_id = await pushed(runtime, "g")
    core = runtime.core
    decide_pause_group(core.slots.of_queue("q").shard, core.now(), "q", "g", "ann", "why")
    (told,) = await of_group(runtime, first_id)
    assert told.message == "group g is paused by ann: why"


async def test_job_is_told_by_what_its_group_is_limited(runtime: Runtime) -> None:
    """A time that somebody set, or its rate."""
    first_id = await pushed(runtime, "g", "g", "h")
    core = runtime.core
    shard = core.slots.of_queue("q").shard
    until_ms = core.wall_ms() + 60_000
    decide_limit_group(shard, core.now(), "q", "h", until_ms, "ann", "429")
    (told,) = await of_group(runtime, first_id + 2)
    assert (told.kind, told.until_ms) == (ObstacleKind.LIMITED_FOR_A_TIME, until_ms)
    assert told.message == "group h lets nothing out until a time by ann: 429"
    rated = GroupSettings(rate=RateLimit(1, 60_000), concurrency=2)
    decide_update_group(shard, core.now(), "q", "g", rated, None)
    await core.commits.commit_once()
    assert await of_group(runtime, first_id + 1) == []
    for wanted in (1, 2):
        # The first pull takes the token, the second one comes upon a group without any.
        await a_pull(runtime, "q", max_jobs=wanted)
        told, *_ = await of_group(runtime, first_id + 1)
        assert (told.kind, told.until_ms) == (ObstacleKind.RATE_LIMITED, until_ms)
        assert told.message == "group g has used up its rate of 1 in 60 s"
    decide_update_group(shard, core.now(), "q", "g", GroupSettings(concurrency=2), None)
    told, *_ = await of_group(runtime, first_id + 1)
    assert told.message == "group g has used up its rate"


async def test_job_is_told_which_dead_job_holds_its_group(runtime: Runtime) -> None:
    first_id = await pushed(runtime, "g", "g")
    core = runtime.core
    shard = core.slots.of_queue("q").shard
    settings = GroupSettings(on_dead_head=OnDeadHead.HOLD)
    decide_update_group(shard, core.now(), "q", "g", settings, None)
    await core.commits.commit_once()
    await a_pull(runtime, "q", max_jobs=1)
    delivery = shard.jobs[first_id].delivery
    decide_fail(shard, core.now(), [FailItem(first_id, delivery, JobError(), FailAction.DEAD)])
    (told,) = await of_group(runtime, first_id + 1)
    assert told.kind is ObstacleKind.GROUP_HELD
    assert str(first_id) in told.message
