"""Why no connected worker may have a job: its version, and the places of its window."""

from __future__ import annotations

from jobline_server.dispatch.frames import Open, Window, Worker, WorkerFrame
from jobline_server.engine.commands import Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import AckLevel, JobOptions
from jobline_server.runtime.obstacles import Obstacle, ObstacleKind
from jobline_server.runtime.runtime import Runtime


async def pushed(runtime: Runtime, rules: JobRules) -> int:
    push = Push("q", JobOptions(rules=rules), payloads=Payloads.of([b"x"]), level=AckLevel.BUFFERED)
    found = await runtime.pushes.push(push)
    await runtime.core.commits.commit_once()
    return found.first_id


def connect(runtime: Runtime, version: str, *, window: int = 1) -> None:
    stream = runtime.streams.open_stream(Open(Worker("w", version=version), (("q", 1),)))
    stream.receive(WorkerFrame(window=Window(window)))


async def obstacles(runtime: Runtime, job_id: int) -> list[Obstacle]:
    _, found = await runtime.explainer.explain_job(job_id)
    return found


async def test_a_version_that_no_worker_has_is_told_with_those_that_are_there(
    runtime: Runtime,
) -> None:
    """Until one of them is new enough."""
    job_id = await pushed(runtime, JobRules(min_worker_version="1.10"))
    connect(runtime, "1.9")
    connect(runtime, "")
    (found,) = await obstacles(runtime, job_id)
    assert found.kind is ObstacleKind.WORKER_VERSION
    assert found.message == (
        "it needs a worker of version 1.10 or newer; those of queue q that handle its name have "
        "1.9, none"
    )
    connect(runtime, "2", window=0)
    assert [one.kind for one in await obstacles(runtime, job_id)] == []


async def test_places_that_no_worker_has_free_are_told(runtime: Runtime) -> None:
    """A worker that holds something needs as many free; one that holds nothing takes any."""
    held = await pushed(runtime, JobRules())
    connect(runtime, "1", window=3)
    job_id = await pushed(runtime, JobRules(slots=3))
    (found,) = await obstacles(runtime, job_id)
    assert (found.kind, found.count) == (ObstacleKind.SLOTS, 3)
    assert (
        found.message == "it takes 3 places of its worker's window, and no worker has so many free"
    )
    assert held < job_id
    connect(runtime, "1", window=1)
    assert runtime.core.slots[0].shard.queues["q"].counts[3] == 0
