"""One way to call both clients, so that one test shows both: blocking calls go to a thread."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from operator import attrgetter
from typing import Any

from jobline import AsyncClient, Client

# Blocking calls of one test all wait at the same time; the loop's own executor has six threads
# here.
_THREADS = ThreadPoolExecutor(32, thread_name_prefix="blocking")


async def in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a blocking function without blocking the loop that serves it."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, function, *arguments)


class Either:
    """A client of either kind; `await either("jobs.get", 5)` calls it, lists for iterators."""

    def __init__(self, client: Client | AsyncClient) -> None:
        self.client = client

    @property
    def is_async(self) -> bool:
        return isinstance(self.client, AsyncClient)

    async def __call__(self, path: str, *arguments: Any, **more: Any) -> Any:
        method = attrgetter(path)(self.client)
        if not self.is_async:
            return await in_thread(_called, method, arguments, more)
        answer = method(*arguments, **more)
        if inspect.isasyncgen(answer):
            return [entry async for entry in answer]
        return await answer

    async def first(self, path: str, count: int, **more: Any) -> list[Any]:
        """The first entries of an endless iterator."""
        iterator = attrgetter(path)(self.client)(**more)
        if self.is_async:
            found = [await anext(iterator) for _ in range(count)]
            await iterator.aclose()
            return found
        entries: list[Any] = await in_thread(lambda: [next(iterator) for _ in range(count)])
        iterator.close()
        return entries

    async def gathered(self, count: int) -> None:
        """Waits until so many pushes are in the client's hands."""
        pusher = self.client._pushers.made()
        assert pusher is not None
        while pusher._batcher.jobs < count:  # noqa: ASYNC110  # a pure part has no event to wait for
            await asyncio.sleep(0)


def _called(method: Any, arguments: Any, more: Any) -> Any:
    answer = method(*arguments, **more)
    return list(answer) if isinstance(answer, Iterator) else answer


@asynccontextmanager
async def connected(kind: str, address: str, **settings: Any) -> AsyncIterator[Either]:
    """A client of a kind, closed at the end."""
    client = Client(address, **settings) if kind == "blocking" else AsyncClient(address, **settings)
    either = Either(client)
    try:
        yield either
    finally:
        await either("close")
