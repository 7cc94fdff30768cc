"""Functions with several parameters, from the push to the result, on a real server."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import partial
from types import ModuleType
from typing import Any

import pytest

from jobline import Context, JobDead, JobType, PayloadMisfit, Worker, job
from jobline.cli.generation import generate
from tests.client.live.either import Either, in_thread
from tests.client.live.working import working


@dataclass
class Size:
    width: int
    height: int = 1


@job(queue="functions")
async def crop(path: str, size: Size, on: date | None = None, *, context: Context) -> list[Any]:
    return [path, size, on, context.attempt]


@job(queue="functions")
def scale(path: str, factor: float = 0.5) -> str:
    return f"{path} by {factor}"


async def result_of(client: Either, declared: JobType, *values: Any, **more: Any) -> Any:
    """Pushes by a client of either kind, and waits."""
    wait = partial(declared.push_and_wait, client.client, *values, **more)
    return await wait() if client.is_async else await in_thread(wait)


async def test_values_arrive_as_they_were_pushed(client, server):
    """By either client, by async and plain handlers, and from a push that knows nothing of them."""
    async with working(Worker(server.address, [crop, scale])):
        first = await result_of(client, crop, "a.png", size=Size(3), on=date(2026, 1, 2))
        assert first == ["a.png", {"width": 3, "height": 1}, "2026-01-02", 1]
        assert await result_of(client, scale, path="b", factor=2) == "b by 2.0"
        assert await client("push_and_wait", "functions", {"path": "c"}, name="scale") == "c by 0.5"
        with pytest.raises(JobDead, match=r"scale\(\): path: is missing"):
            await client("push_and_wait", "functions", {"factor": 1}, name="scale", max_attempts=1)


async def test_introspection_and_generated_wrappers_know_the_parameters(client, server):
    """The queue refuses what does not fit, and the wrapper pushes what does."""
    async with working(Worker(server.address, [crop, scale])):
        handlers = await client("admin.handlers", "functions")
        text = generate("python", handlers)
        module = ModuleType("generated_functions")
        exec(compile(text, "generated", "exec", dont_inherit=True), module.__dict__)
        await client("queues.update", "functions", check_payloads=True)
        with pytest.raises(PayloadMisfit, match="/properties/factor"):
            await client("push", "functions", {"path": "c", "factor": "x"}, name="scale")
        wrapper = module.__dict__["functions_scale"]
        assert await result_of(client, wrapper, {"path": "d"}) == "d by 0.5"
        await client("queues.update", "functions", check_payloads=False)
    assert "class FunctionsScalePayload(TypedDict):\n    path: str\n    factor: Not" in text
