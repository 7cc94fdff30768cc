"""What type checkers see. `make types` checks every line here: `assert_type` fails there if a type
is another one, and an unused `type: ignore` if a mistake is not found.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, assert_type

from jobline import (
    AsyncClient,
    BulkResult,
    Client,
    Context,
    FunctionJob,
    Job,
    JobError,
    JobState,
    JobType,
    Pushed,
    Queue,
    QueueSettings,
    job,
)


@dataclass
class Resize:
    path: str


@dataclass
class Resized:
    pixels: int


RESIZE = JobType(queue="images", name="resize", payload=Resize, result=Resized)


@job(queue="images", max_attempts=5)
async def shrink(request: Resize) -> Resized:
    return Resized(1)


@job(queue="images")
async def crop(path: str, width: int = 100) -> Resized:
    return Resized(width)


@job(queue="images")
def blur(path: str, radius: int, context: Context) -> Resized:
    return Resized(radius)


@job(queue="images")
def sweep() -> int:
    return 0


@job(queue="images")
async def rotate(request: Resize, context: Context) -> Resized:
    return Resized(1)


async def types_of_functions(client: Client, awaited: AsyncClient) -> None:
    assert_type(crop, FunctionJob[Resized])
    assert_type(blur, FunctionJob[Resized])
    assert_type(sweep, FunctionJob[int])
    assert_type(rotate, JobType[Resize, Resized])
    assert_type(crop.push(client, path="a.png", width=64, priority=9), Pushed)
    assert_type(await crop.push(awaited, "a.png"), Pushed)
    assert_type(await crop.with_options(delay=5).push(awaited, "a.png"), Pushed)
    assert_type(blur.push_and_wait(client, "a.png", 3), Resized)
    assert_type(await blur.push_and_wait(awaited, "a.png", radius=3, timeout=5), Resized)


async def types_of_declared_jobs(client: Client, awaited: AsyncClient) -> None:
    assert_type(RESIZE, JobType[Resize, Resized])
    assert_type(JobType(queue="q", name="n", payload=Resize), JobType[Resize, Any])
    assert_type(JobType(queue="q", name="n", result=list[int]), JobType[Any, list[int]])
    assert_type(JobType(queue="q", name="n", max_attempts=5), JobType[Any, Any])
    assert_type(JobType(queue="q", name="n", payload=int | None), JobType[Any, Any])
    assert_type(shrink, JobType[Resize, Resized])
    assert_type(RESIZE.push(client, Resize("a"), lease="1m"), Pushed)
    assert_type(RESIZE.push_and_wait(client, Resize("a"), max_attempts=1), Resized)
    assert_type(await RESIZE.push_and_wait(awaited, Resize("a")), Resized)
    RESIZE.push(client, "a.png")  # type: ignore[call-overload]  # another payload


def types_of_pushes(client: Client) -> None:
    client.push("q", {}, max_attempts=5, lease=60, priority=1, ack_level="memory")
    client.push("q", {}, max_atempts=5)  # type: ignore[call-arg]  # a typing mistake
    client.push("q", {}, max_attempts="5")  # type: ignore[arg-type]  # a number
    client.push("q", {}, ack_level="disk")  # type: ignore[arg-type]  # no level
    client.push_many("q", [b""], max_attempts=5, lease="60s")
    client.push_many("q", [b""], max_atempts=5)  # type: ignore[call-arg]  # a typing mistake


async def types_of_operators(client: Client, awaited: AsyncClient) -> None:
    for found in client.jobs.list(queue="mail", state=["dead", JobState.CANCELLED], older="1h"):
        assert_type(found, Job)
        assert_type(found.state, JobState)
        assert_type(found.ended_at, datetime | None)
    async for found in awaited.jobs.list("queue:mail state:dead"):
        assert_type(found.error, JobError | None)
    assert_type(client.jobs.cancel(1, 2), BulkResult)
    assert_type(await awaited.jobs.retry(queue="mail", dry_run=True), BulkResult)
    assert_type(client.queues.update("mail", max_attempts=5, lease="2m").counts.ready, int)
    assert_type(client.queues.update("mail", QueueSettings(max_waiting=9)), Queue)
    assert_type([worker.description.host for worker in client.admin.workers()], list[str])
    assert_type((await awaited.admin.stats()).loop_lag, timedelta | None)
    client.jobs.list(stat="dead")  # type: ignore[call-arg]  # a typing mistake
    client.jobs.list(state="gone")  # type: ignore[arg-type]  # no state
    client.queues.update("mail", max_atempts=5)  # type: ignore[call-overload]  # a typing mistake


def test_types_are_those_of_the_declaration():
    """Trial D6: `JobType(payload=…)` is of that type, for type checkers as at run time."""
    assert all(
        map(
            callable,
            [types_of_functions, types_of_declared_jobs, types_of_pushes, types_of_operators],
        )
    )
    assert (RESIZE.payload, RESIZE.result) == (Resize, Resized)
