"""Where a job stands in a queue whose jobs age."""

from __future__ import annotations

import pytest

from jobline_server.engine.ageing import Ageing
from jobline_server.engine.decide.queues import decide_update_queue
from jobline_server.engine.values import QueueSettings
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.queries import explain_ageing
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.queries.test_explain import ahead, push


def wait(runtime: Runtime, ms: int) -> None:
    clock = runtime.core.clock
    assert isinstance(clock, ManualClock)
    clock.advance(ms)


async def age(runtime: Runtime, ms: int) -> None:
    """Has the jobs of the queue age, and wait."""
    settings = QueueSettings(ageing=Ageing(1_000))
    decide_update_queue(runtime.core.slots[0].shard, runtime.core.now(), "q", settings, None)
    wait(runtime, ms)


async def said(runtime: Runtime, job_id: int) -> str:
    found = await ahead(runtime, job_id)
    return "" if found is None else found.message


async def test_jobs_go_before_it_by_their_age(runtime: Runtime) -> None:
    """And it says what its priority counts as."""
    old = await push(runtime, "mine", 3)
    await age(runtime, 2_500)
    low = await push(runtime, "mine", 2, priority=1)
    high = await push(runtime, "mine", 4, priority=3)
    assert await said(runtime, high) == ""
    assert await said(runtime, old) == "4 jobs go before it; by its age its priority 0 counts as 2"
    assert (await said(runtime, old + 2)).startswith("6 jobs go before it;")
    assert await said(runtime, low + 1) == "8 jobs go before it"
    wait(runtime, 1_000)
    assert await said(runtime, old) == "4 jobs go before it; by its age its priority 0 counts as 3"


async def test_no_more_is_looked_at_than_a_question_may_cost(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the count is a lower bound."""
    monkeypatch.setattr(explain_ageing, "WALK_MAX", 2)
    for _ in range(4):
        last = await push(runtime, "mine", 2)
    await age(runtime, 0)
    assert await said(runtime, last) == "at least 4 jobs go before it"


async def test_behind_a_closed_gate_those_count_that_are_higher(runtime: Runtime) -> None:
    """Its limiter says why it does not run; the others go meanwhile."""
    await push(runtime, "other", 2, priority=1)
    mine = await push(runtime, "mine", 1)
    await push(runtime, "other", 5, priority=-4)
    await age(runtime, 0)
    queue = runtime.core.slots[0].shard.queues["q"]
    (key,) = [lane.key for lane in queue.lanes() if lane.name == "mine"]
    queue.close_gate(key)
    assert await said(runtime, mine) == "2 jobs go before it"
