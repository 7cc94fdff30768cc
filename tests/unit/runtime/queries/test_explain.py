"""Why a job is not running: its obstacles, and which jobs go before it."""

from __future__ import annotations

import pytest

from jobline_server.dispatch.frames import Handler, Open, Worker
from jobline_server.engine.commands import Pull, Push, RefusalKind, Refused
from jobline_server.engine.decide.queues import decide_pause_queue, decide_resume_queue
from jobline_server.engine.limits import LEASE_MS_DEFAULT
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import AckLevel, JobOptions, JobState, Retention
from jobline_server.runtime.obstacles import Obstacle, ObstacleKind
from jobline_server.runtime.queries import explain
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.commits.test_commits import a_pull


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


async def kinds(runtime: Runtime, job_id: int) -> list[ObstacleKind]:
    _, obstacles = await runtime.explainer.explain_job(job_id)
    return [one.kind for one in obstacles]


async def told(runtime: Runtime, job_id: int, kind: ObstacleKind) -> str:
    """The sentence of one of its obstacles."""
    _, obstacles = await runtime.explainer.explain_job(job_id)
    (found,) = [one for one in obstacles if one.kind is kind]
    return found.message


async def test_obstacles_of_a_waiting_job_are_all_named(runtime: Runtime) -> None:
    """Its push, its queue, and who would take it."""
    payloads = Payloads.of([b"x"])
    pushed = await runtime.pushes.push(
        Push("q", JobOptions(name="mine"), payloads=payloads, level=AckLevel.BUFFERED)
    )
    job_id = pushed.first_id
    assert await kinds(runtime, job_id) == [ObstacleKind.NOT_DURABLE, ObstacleKind.NO_WORKER]
    await runtime.core.commits.commit_once()
    slot = runtime.core.slots[0]
    decide_pause_queue(slot.shard, runtime.core.now(), "q", "root", "too hot")
    assert await told(runtime, job_id, ObstacleKind.QUEUE_PAUSED) == (
        "queue q is paused by root: too hot"
    )
    decide_pause_queue(slot.shard, runtime.core.now(), "q", "", "")
    assert await told(runtime, job_id, ObstacleKind.QUEUE_PAUSED) == "queue q is paused"
    decide_resume_queue(slot.shard, runtime.core.now(), "q")
    connect(runtime, "other")
    assert await kinds(runtime, job_id) == [ObstacleKind.UNHANDLED_NAME]
    connect(runtime, "mine")
    assert await told(runtime, job_id, ObstacleKind.WORKERS_BUSY) == (
        "all 2 workers of queue q are busy"
    )


async def test_what_becomes_of_a_job_by_itself_is_told_with_its_time(runtime: Runtime) -> None:
    """Due later, run by somebody, ended; one that never was is not found."""
    now_ms = runtime.core.wall_ms()
    payloads = Payloads.of([b"x"])
    push = Push("q", JobOptions(), payloads=payloads, run_at_ms=now_ms + 5_000)
    push.level = AckLevel.BUFFERED
    later = (await runtime.pushes.push(push)).first_id
    assert await runtime.explainer.explain_job(later) == (
        JobState.SCHEDULED,
        [Obstacle(ObstacleKind.NOT_DUE, "its time has not come", now_ms + 5_000)],
    )
    first_id = await push_of(runtime)
    (run,) = (await a_pull(runtime, "q")).runs
    _, (running,) = await runtime.explainer.explain_job(first_id)
    assert (running.kind, running.message) == (ObstacleKind.RUNNING, "worker 'w' has it")
    assert running.until_ms == now_ms + LEASE_MS_DEFAULT
    pulled_id = await push_of(runtime)
    await runtime.pulls.pull(Pull((("q", 1),), max_jobs=1))
    assert await told(runtime, pulled_id, ObstacleKind.RUNNING) == "a caller of Pull has it"
    runtime.settles.ack([first_id], [run.delivery], {})
    await runtime.core.commits.commit_once()
    assert await runtime.explainer.explain_job(first_id) == (
        JobState.COMPLETED,
        [
            Obstacle(
                ObstacleKind.ENDED,
                "it is COMPLETED; by its own options it is kept for 90 s "
                "and beside 1,000 that ended after it",
            )
        ],
    )
    with pytest.raises(Refused) as refused:
        await runtime.explainer.explain_job(first_id + 100)
    assert refused.value.kind is RefusalKind.JOB_NOT_FOUND


async def push_of(runtime: Runtime) -> int:
    """A job that says how long it is kept."""
    options = JobOptions(retention=Retention(age_ms=90_000, count=1_000))
    push = Push("q", options, payloads=Payloads.of([b"x"]), level=AckLevel.BUFFERED)
    first_id = (await runtime.pushes.push(push)).first_id
    await runtime.core.commits.commit_once()
    return first_id
