"""What type checkers see. `make types` checks every line here: `assert_type` fails there if a type
is another one, and an unused `type: ignore` if a mistake is not found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_type

from jobline import AsyncClient, Client, JobType, Pushed, job


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


def test_types_are_those_of_the_declaration():
    """Trial D6: `JobType(payload=…)` is of that type, for type checkers as at run time."""
    checked: list[Callable[..., Any]] = [types_of_declared_jobs, types_of_pushes]
    assert len(checked) == 2
    assert (RESIZE.payload, RESIZE.result) == (Resize, Resized)
