"""Jobs that nobody gets before a whole frame is written.

Each task pushes its rows as members of a batch of its own, SCHEDULED for a time that is far away.
All batches of a write have its name, and those of one try of it a tag. The driver commits in steps
of which each may be repeated:

1. it cancels what belongs to no task that counts: of tasks that failed, and of earlier tries;
2. it closes the batches that count;
3. it creates a batch without members, the *decision*: from here on the write has happened;
4. it promotes the members of the closed batches of the try that the decision names.

A write that is repeated after step 3, because the driver was killed, finds the decision, pushes
nothing and repeats step 4; one that is repeated before drops what the first try left. So all rows
become READY or none, though not in one instant: the server promotes in slices. The decision is kept
for a day, as all complete batches are; a run id is used once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b
from itertools import chain
from typing import Any

from jobline import AsyncClient
from jobline.errors import JoblineError
from jobline.v1.batch_service_pb2 import CreateBatchRequest
from jobline.v1.batch_service_pb2_grpc import BatchServiceStub
from jobline_pipeline.problems import PipelineError
from jobline_pipeline.source.clients import connected, read
from jobline_pipeline.source.lots import Lot
from jobline_pipeline.source.options import Server
from jobline_pipeline.source.pushing import Pusher

# The longest delay that a job can have, in seconds.
HOLD_SECONDS = 400 * 86_400
DECISION = "decision"
# A call that changes very many jobs takes long: the server does some 50,000 a second.
CALL_SECONDS = 300.0
PATIENCE_SECONDS = 3_600.0
_PAUSE_SECONDS = 0.5


async def push_held(
    client: AsyncClient, pusher: Pusher, lots: Iterator[Lot], run: str, attempt: str
) -> int:
    """Pushes lots as members of a new batch; returns its id, 0 for no lots, or a run that was
    decided before: then nothing is pushed.
    """
    first = next(lots, None)
    if first is None or await _decided(client, run):
        return 0
    batch = await client.batches.create(_name(run), tags=[_try_tag(attempt)])
    await pusher.push_all(chain([first], lots), batch_id=batch.id, delay=HOLD_SECONDS)
    return batch.id


async def commit(server: Server, run: str, attempt: str, ids: Iterable[int]) -> None:
    """Releases the members of these batches, or what an earlier try of the run has decided to."""
    counts = set(ids)
    async with connected(replace(server, timeout=CALL_SECONDS), patience=server.timeout) as client:
        decided = await _decided(client, run)
        if not decided:
            await _cancel_others(client, run, counts)
            for batch_id in counts:
                await client.batches.close(batch_id)
            decided = await _decide(client, server, run, attempt)
        if decided != attempt:
            # An earlier try, or another driver, came first.
            for batch_id in counts:
                await _again(client.batches.cancel, batch_id, reason=f"{run} was written before")
        await _release(client, run, decided)


async def drop(server: Server, run: str) -> None:
    """Cancels what a run holds, unless it was decided."""
    async with connected(replace(server, timeout=CALL_SECONDS), patience=server.timeout) as client:
        if not await _decided(client, run):
            await _cancel_others(client, run, set())


async def _decided(client: AsyncClient, run: str) -> str:
    """Returns the try that was decided for; "" if none was."""
    async for batch in client.batches.list(name=_name(run), tags=[DECISION]):
        return next(tag.removeprefix("try:") for tag in batch.tags if tag.startswith("try:"))
    return ""


async def _decide(client: AsyncClient, server: Server, run: str, attempt: str) -> str:
    """Creates the decision; returns the try that it names, which another driver may have."""
    request = CreateBatchRequest(
        name=_name(run),
        tags=sorted([DECISION, _try_tag(attempt)]),
        request_id=blake2b(_name(run).encode(), digest_size=16).hexdigest(),
    )
    try:
        response = await read(server, BatchServiceStub(client.channel).CreateBatch, request)
    except PipelineError:
        # Refused as another driver made it, or it is not known whether it was made.
        decided = await _decided(client, run)
        if not decided:
            raise
        return decided
    await client.batches.close(response.batch.id)
    return attempt


async def _release(client: AsyncClient, run: str, attempt: str) -> None:
    async for batch in client.batches.list(name=_name(run), tags=[_try_tag(attempt)]):
        if batch.closed_at and not batch.cancelled_at and DECISION not in batch.tags:
            await _again(client.jobs.promote, batch_id=batch.id, reason=_name(run))


async def _cancel_others(client: AsyncClient, run: str, counts: set[int]) -> None:
    async for batch in client.batches.list(name=_name(run)):
        if batch.id not in counts and not batch.cancelled_at:
            await _again(client.batches.cancel, batch.id, reason=f"{_name(run)} was not written")


async def _again(call: Callable[..., Awaitable[Any]], *args: Any, **how: Any) -> None:
    """Makes a call until it has an answer: one that was cut off has done a part."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            await call(*args, **how)
        except JoblineError as error:
            if not error.retryable or time.monotonic() > until:
                raise
        else:
            return
        await asyncio.sleep(_PAUSE_SECONDS)


def _name(run: str) -> str:
    return f"spark {run}"[:256]


def _try_tag(attempt: str) -> str:
    return f"try:{attempt}"
