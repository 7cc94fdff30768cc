"""What operators are shown of groups, and what they change."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

import pytest

from jobline_server.engine.allowance import TimeLimit
from jobline_server.engine.commands import Push, Refused
from jobline_server.engine.decide.groups import decide_update_group
from jobline_server.engine.decide.queues import decide_update_queue
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, QueueSettings
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit, GroupView
from tests.unit.runtime.commits.test_commits import a_pull
from tests.unit.runtime.ended.test_many_ids import committed


async def pushed(runtime: Runtime, *groups: str) -> int:
    """Pushes a job per group; returns the first id."""
    rows = JobColumns(
        [b"x"] * len(groups),
        [DEFAULT_OPTIONS] * len(groups),
        ties=[Ties(group) for group in groups],
    )
    push = Push("q", DEFAULT_OPTIONS, rows=rows, level=AckLevel.BUFFERED)
    first_id = (await runtime.pushes.push(push)).first_id
    await runtime.core.commits.commit_once()
    return first_id


async def done(runtime: Runtime, call: Coroutine[None, None, GroupView]) -> GroupView:
    """What a call is answered once it is on disk."""
    task = asyncio.ensure_future(call)
    await committed(runtime, task)
    return task.result()


async def test_groups_are_listed_by_name_a_page_at_a_time(runtime: Runtime) -> None:
    await pushed(runtime, "c", "a", "b", "a")
    list_groups = runtime.groups.list_groups
    first, token = await list_groups("q", page_size=2, page_token="", prefix="")
    assert [(view.name, view.ready) for view in first] == [("a", 2), ("b", 1)]
    rest, end = await list_groups("q", page_size=2, page_token=token, prefix="")
    assert ([view.name for view in rest], end) == (["c"], "")
    found, _ = await list_groups("q", page_size=2, page_token="", prefix="b")
    assert [view.name for view in found] == ["b"]
    with pytest.raises(Refused, match="there is no queue"):
        await list_groups("nowhere", page_size=2, page_token="", prefix="")


async def test_group_is_limited_until_a_time_and_shows_its_tokens(runtime: Runtime) -> None:
    await pushed(runtime, "a")
    until_ms = runtime.core.wall_ms() + 60_000
    view = await done(runtime, runtime.groups.limit_group("q", "a", until_ms, Audit("ann", "why")))
    assert (view.limited, view.tokens) == (TimeLimit(until_ms, "ann", "why"), None)
    wanted = GroupSettings(rate=RateLimit(3))
    view = await done(runtime, runtime.groups.update_group("q", "a", wanted, None))
    assert view.tokens == 3
    view = await done(runtime, runtime.groups.limit_group("q", "a", 0, Audit("ann", "")))
    assert view.limited is None


async def test_group_that_goes_while_it_is_listed_is_left_out(runtime: Runtime) -> None:
    """A list takes its names in steps."""
    job_id = await pushed(runtime, "a", "b")
    listing = asyncio.ensure_future(
        runtime.groups.list_groups("q", page_size=5, page_token="", prefix="")
    )
    queue = runtime.core.slots.of_queue("q").shard.queues["q"]
    await asyncio.sleep(0)
    group = queue.groups.find("a")
    assert group is not None
    assert runtime.core.slots.of_queue("q").shard.jobs[job_id].ties.group == "a"
    queue.groups.remove(group)
    assert [view.name for view in (await listing)[0]] == ["b"]
    queue.groups.add(group)


async def test_changes_are_answered_with_the_group_once_they_are_on_disk(runtime: Runtime) -> None:
    """Also where the group is gone by then: it is shown empty."""
    await pushed(runtime, "a")
    settings = GroupSettings(concurrency=2)
    change = runtime.groups.update_group("q", "new", settings, None)
    view = await done(runtime, change)
    assert (view.name, view.settings, view.ready) == ("new", settings, 0)
    pause = runtime.groups.pause_group("q", "a", Audit("ann", "why"))
    view = await done(runtime, pause)
    assert (view.paused, view.paused_by, view.pause_reason) == (True, "ann", "why")
    resume = runtime.groups.resume_group("q", "a")
    assert not (await done(runtime, resume)).paused
    back = runtime.groups.update_group("q", "new", GroupSettings(), None)
    view = await done(runtime, back)
    assert view.settings == GroupSettings()


async def test_group_of_a_fair_queue_shows_what_its_tenant_has(runtime: Runtime) -> None:
    """Its weight, and the worker time that it used."""
    core = runtime.core
    shard = core.slots.of_queue("q").shard
    decide_update_queue(shard, core.now(), "q", QueueSettings(fair=True), None)
    await pushed(runtime, "g", "g", "h")
    await a_pull(runtime, "q", max_jobs=2)
    views, _ = await runtime.groups.list_groups("q", page_size=9, page_token="", prefix="")
    assert [(view.name, view.ready, view.active, view.weight) for view in views] == [
        ("g", 1, 1, 1),
        ("h", 0, 1, 1),
    ]
    assert all(view.worker_time_ms >= 1 for view in views)
    decide_update_group(shard, core.now(), "q", "idle", GroupSettings(weight=7), None)
    views, _ = await runtime.groups.list_groups("q", page_size=9, page_token="", prefix="idle")
    assert [(view.ready, view.active, view.weight) for view in views] == [(0, 0, 7)]
