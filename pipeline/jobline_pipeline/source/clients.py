"""Connections of tasks and of the driver, and what their errors say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
from grpc import aio

from jobline import AsyncClient
from jobline.errors import JoblineError, NotConnected, QueueNotFound
from jobline_pipeline.problems import PipelineError
from jobline_pipeline.source.options import Server

# The pause before a call is repeated that a restart of the server cut off.
RETRY_SECONDS = 0.1


@asynccontextmanager
async def connected(server: Server, *, patience: float = 0) -> AsyncIterator[AsyncClient]:
    """Gives a client that has reached the server, which may be away for `patience` seconds, as in a
    restart. Raises PipelineError, also for what is refused within the block.
    """
    until = time.monotonic() + patience
    try:
        async with AsyncClient(
            server.address, timeout=server.timeout, metadata=server.metadata
        ) as client:
            while True:
                try:
                    await client.connect()
                    break
                except NotConnected:
                    if time.monotonic() >= until:
                        raise
                await asyncio.sleep(RETRY_SECONDS)
            yield client
    except JoblineError as error:
        raise problem_of(server, error) from error


def problem_of(server: Server, error: JoblineError) -> PipelineError:
    """Returns an error as a sentence."""
    if isinstance(error, NotConnected):
        return PipelineError(
            f"no Jobline server answers at {server.address}; the option address names it"
        )
    if isinstance(error, QueueNotFound):
        return PipelineError(f"{error.message}; the option queues names those to read")
    return PipelineError(f"{server.address}: {error.message}")


async def read(server: Server, method: Callable[..., Awaitable[Any]], request: Any) -> Any:
    """Makes a call that changes nothing; again while the server is away, up to the timeout. Raises
    PipelineError.
    """
    until = time.monotonic() + server.timeout
    metadata = aio.Metadata(*server.metadata.items())
    while True:
        try:
            return await method(
                request, timeout=server.timeout, metadata=metadata, wait_for_ready=True
            )
        except aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE or time.monotonic() > until:
                raise problem_of_call(server, error) from error
        await asyncio.sleep(RETRY_SECONDS)


def problem_of_call(server: Server, error: aio.AioRpcError) -> PipelineError:
    """Returns what a call was refused with, as a sentence."""
    return PipelineError(f"{server.address}: {error.details() or error.code().name}")
