"""`docs/walk.md`: the functions of a push, a hand-out and an ack, in their order."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from grpc import aio

from jobline.v1 import job_service_pb2
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.testing.embedded import running_server

WALK = Path(__file__).parents[2] / "docs" / "walk.md"
# Rows of each table, at most.
LIMITS = {"A push": 40, "A hand-out": 25, "An ack": 45}
# Functions of ours that each call runs, those that the tables leave out too. They do not grow.
CALLED_MAX = {"A push": 166, "A hand-out": 183, "An ack": 165}
ROUNDS = 10


def tables() -> dict[str, list[str]]:
    """Functions by heading."""
    sections = re.split(r"^## ", WALK.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {
        section.split("\n", 1)[0]: re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
        for section in sections
    }


async def called_in(call: Callable[[], Awaitable[Any]]) -> tuple[Any, list[str]]:
    """What a call returns, and our functions in the order in which each was first called."""
    called: dict[str, None] = {}

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and "/jobline_server/" in code.co_filename:
            called[code.co_qualname] = None

    # What the server does by itself comes between two calls.
    await asyncio.sleep(0)
    sys.setprofile(profile)
    try:
        answer = await call()
    finally:
        sys.setprofile(None)
    return answer, list(called)


@pytest.fixture(scope="module")
def walks() -> dict[str, list[list[str]]]:
    """The functions of the three calls, several times."""
    return asyncio.run(walk())


async def walk() -> dict[str, list[list[str]]]:
    """Profiles each call again and again: the server's own work comes between them now and then,
    and what is made once is made in the first round.
    """
    found: dict[str, list[list[str]]] = {call: [] for call in LIMITS}
    push = job_service_pb2.PushRequest(queue="q", payloads=[b"x"])
    queues = [job_service_pb2.QueueWeight(queue="q")]
    pull = job_service_pb2.PullRequest(queues=queues, worker="w")

    async with (
        running_server(transport="native") as server,
        aio.insecure_channel(server.address) as channel,
    ):
        stub = JobServiceStub(channel)

        async def profiled(call: str, function: Callable[[], Awaitable[Any]]) -> Any:
            await server.runtime.core.commits.wait()
            answer, called = await called_in(function)
            found[call].append(called)
            return answer

        for _ in range(ROUNDS):
            await profiled("A push", partial(stub.Push, push))
            [job] = (await profiled("A hand-out", partial(stub.Pull, pull))).jobs
            ack = job_service_pb2.AckRequest(ids=[job.id], deliveries=[job.delivery])
            await profiled("An ack", partial(stub.Ack, ack))
    return found


@pytest.mark.parametrize("call", LIMITS)
def test_the_walk_names_what_is_called_in_its_order(walks, call):
    """Each row is called, after the one before it."""
    named = tables()[call]
    assert len(named) <= LIMITS[call]
    assert named in [[name for name in called if name in named] for called in walks[call]]


@pytest.mark.parametrize("call", LIMITS)
def test_a_call_runs_no_more_functions_than_it_did(walks, call):
    """Each costs a tenth of a microsecond, and several where caches are cold."""
    assert min(map(len, walks[call])) <= CALLED_MAX[call]
