"""Which jobs go before one that waits."""

from __future__ import annotations

import pytest

from jobline_server.dispatch.frames import Handler, Open, Worker
from jobline_server.engine.commands import Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import AckLevel, JobOptions
from jobline_server.runtime.queries import explain
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Obstacle, ObstacleKind


async def push(runtime: Runtime, name: str, count: int, *, priority: int = 0) -> int:
    """Jobs of a name, ready to be handed out; returns the first id."""
    options = JobOptions(name=name, priority=priority)
    payloads = Payloads.of([b"x"] * count)
    pushed = await runtime.pushes.push(
        Push("q", options, payloads=payloads, level=AckLevel.BUFFERED)
    )
    await runtime.core.commits.commit_once()
    return pushed.first_id


def connect(runtime: Runtime, *names: str) -> None:
    """A worker without a window."""
    handlers = tuple(Handler("q", name) for name in names)
    runtime.streams.open_stream(Open(Worker("w"), (("q", 1),), handlers=handlers))


async def ahead(runtime: Runtime, job_id: int) -> Obstacle | None:
    _, obstacles = await runtime.explainer.explain_job(job_id)
    return next((one for one in obstacles if one.kind is ObstacleKind.JOBS_AHEAD), None)


@pytest.mark.parametrize(
    ("workers", "count"),
    [
        ([], 3 + 5 + 7 + 2),
        ([()], 3 + 5 + 7 + 2),
        ([("mine",)], 5 + 2),
        ([("mine", "other"), ("third",)], 3 + 5 + 2),
        ([("third",)], 3 + 5 + 7 + 2),
    ],
    ids=["nobody", "any name", "its name alone", "another name too", "not its name"],
)
async def test_jobs_of_every_lane_that_its_workers_take_from_go_before_it(
    runtime: Runtime, workers: list[tuple[str, ...]], count: int
) -> None:
    """Trial B11: by priority, then by the time of becoming ready."""
    await push(runtime, "other", 3)
    await push(runtime, "mine", 5, priority=9)
    await push(runtime, "third", 7)
    first_id = await push(runtime, "mine", 10)
    await push(runtime, "other", 100)
    await push(runtime, "other", 100, priority=-1)
    for names in workers:
        connect(runtime, *names)
    found = await ahead(runtime, first_id + 2)
    assert found is not None
    assert (found.count, found.message) == (count, f"{count} jobs go before it")


async def test_no_more_is_looked_at_than_a_question_may_cost(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial B11: then the count is a lower bound, and the message has "at least"."""
    monkeypatch.setattr(explain, "WALK_MAX", 4)
    for _ in range(8):
        await push(runtime, "mine", 2)
    last = await push(runtime, "mine", 1)
    found = await ahead(runtime, last)
    assert found is not None
    assert (found.count, found.message) == (6, "at least 6 jobs go before it")


async def test_one_job_goes_before_the_second(runtime: Runtime) -> None:
    """In the singular."""
    first_id = await push(runtime, "mine", 2)
    found = await ahead(runtime, first_id + 1)
    assert found is not None
    assert found.message == "1 job goes before it"


async def test_nothing_goes_before_the_first(runtime: Runtime) -> None:
    first_id = await push(runtime, "mine", 2)
    assert await ahead(runtime, first_id) is None
