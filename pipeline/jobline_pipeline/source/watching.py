"""Reads the events of a server from one position to another, over broken connections.

A range is read by `Watch`: it begins behind the first position, and is complete when an answer's
token covers the last one. The server tells at once when a watch that resumes has caught up, so the
end of a range is known although the last commits have no event that was asked for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

import grpc
from grpc import aio

from jobline.v1.event_pb2 import EventKind
from jobline.v1.job_service_pb2 import WatchRequest, WatchResponse
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_pipeline.problems import PipelineError
from jobline_pipeline.source.clients import RETRY_SECONDS, connected, problem_of_call
from jobline_pipeline.source.options import Server
from jobline_pipeline.source.positions import Position, from_token, is_before, place_of

# How long a watch tries to reach a server that was restarted.
AWAY_SECONDS = 60.0


class EventsGone(PipelineError):
    """The events after a position are kept no longer."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which events; empty: all."""

    queues: tuple[str, ...]
    kinds: tuple[EventKind.ValueType, ...]


async def now_of(server: Server, *, patience: float = AWAY_SECONDS) -> Position:
    """Returns the position after all that has happened; events from now on are kept an hour."""
    async with aclosing(_answers(server, Chosen((), ()), "", patience)) as answers:
        return from_token((await anext(answers)).resume_token)


async def runs_between(
    server: Server, chosen: Chosen, start: Position, end: Position
) -> AsyncGenerator[Sequence[Any], None]:
    """Yields the runs of events after `start` and before `end`, an answer's at a time. Raises
    EventsGone.
    """
    async with aclosing(_answers(server, chosen, start.token())) as answers:
        async for answer in answers:
            runs = [run for run in answer.runs if _is_in(run, end)]
            if runs:
                yield runs
            if from_token(answer.resume_token).covers(end):
                return


def _is_in(run: Any, end: Position) -> bool:
    return is_before(place_of(run.resume_token), run.shared.shard, run.shared.offset, end)


async def position_after(
    server: Server, chosen: Chosen, start: Position, *, limit: int, wait: float
) -> tuple[Position, int]:
    """Returns a position after `start` and how many chosen events are before it: at least `limit`,
    to the end of a commit, or all. Waits up to `wait` seconds for the first one. Raises EventsGone.
    """
    events, reached, left = 0, start, None
    async with aclosing(_answers(server, chosen, start.token())) as answers:
        with suppress(TimeoutError):
            while True:
                async with asyncio.timeout(left):
                    answer = await anext(answers)
                for run in answer.runs:
                    begun = place_of(run.resume_token).begun
                    if events >= limit and begun.is_later_in_life(reached):
                        return begun, events
                    reached = begun
                    events += sum(run.counts) if run.counts else len(run.starts) or 1
                if not answer.runs:
                    # All that there was is read.
                    reached = from_token(answer.resume_token)
                    if events or not wait:
                        break
                    left = wait
    return reached, events


async def _answers(
    server: Server, chosen: Chosen, token: str, patience: float = AWAY_SECONDS
) -> AsyncGenerator[WatchResponse, None]:
    """Yields the answers of a watch, over restarts of the server; without runs where it has caught
    up, and at the beginning of one without a token. Raises EventsGone.
    """
    request = WatchRequest(
        queues=chosen.queues, kinds=chosen.kinds, resume_token=token, accepts_runs=True
    )
    metadata = aio.Metadata(*server.metadata.items())
    until = time.monotonic() + AWAY_SECONDS
    async with connected(server, patience=patience) as client:
        stub = JobServiceStub(client.channel)
        while True:
            call = stub.Watch(request, metadata=metadata, wait_for_ready=True)
            says_where = bool(request.resume_token)
            try:
                async for answer in call:
                    until = time.monotonic() + AWAY_SECONDS
                    if says_where:
                        # The first answer has the token that the call began with.
                        says_where = False
                        continue
                    yield answer
                    request.resume_token = answer.resume_token
            except aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.OUT_OF_RANGE:
                    raise EventsGone(_GONE.format(server.address)) from error
                if error.code() is not grpc.StatusCode.UNAVAILABLE or time.monotonic() > until:
                    raise problem_of_call(server, error) from error
            finally:
                call.cancel()
            await asyncio.sleep(RETRY_SECONDS)


_GONE = (
    "{}: the events after the last position are gone. A server keeps the last 10,000 commits, "
    "for an hour after the last reader; what is older is in its exported history. Begin anew "
    "with another checkpointLocation, or set failOnDataLoss to false to go on from now"
)
