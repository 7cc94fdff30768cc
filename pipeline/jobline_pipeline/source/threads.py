"""The event loop of a process, in a thread: Spark calls what blocks, a client belongs to a loop.

There is one loop, which is never closed: gRPC logs errors about loops that end before it does.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError
from contextlib import aclosing, suppress
from typing import Any, TypeVar

T = TypeVar("T")

_END = object()
# How soon a full queue is looked at again by the thread that fills it.
_LOOK_SECONDS = 0.002
_made: dict[int, asyncio.AbstractEventLoop] = {}
_making = threading.Lock()


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end; a caller that is interrupted cancels it."""
    future = asyncio.run_coroutine_threadsafe(coroutine, _loop())
    try:
        return future.result()
    finally:
        future.cancel()


def iterate(make: Callable[[], AsyncGenerator[T, None]], *, ahead: int = 4) -> Iterator[T]:
    """Yields what a generator yields, up to `ahead` items read in advance; raises what it raises.
    A caller that stops early ends it.
    """
    items: queue.Queue[Any] = queue.Queue(ahead)
    future = asyncio.run_coroutine_threadsafe(_read(make, items), _loop())
    try:
        while (item := items.get()) is not _END:
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        future.cancel()
        with suppress(CancelledError):
            future.result()


def _loop() -> asyncio.AbstractEventLoop:
    """Returns the loop of this process, which a fork does not inherit."""
    with _making:
        loop = _made.get(os.getpid())
        if loop is None:
            loop = _made[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="jobline-source", daemon=True).start()
        return loop


async def _read(make: Callable[[], AsyncGenerator[T, None]], items: queue.Queue[Any]) -> None:
    try:
        async with aclosing(make()) as found:
            async for item in found:
                await _put(items, item)
    except Exception as error:  # noqa: BLE001 - the other thread raises it
        await _put(items, error)
    else:
        await _put(items, _END)


async def _put(items: queue.Queue[Any], item: object) -> None:
    while True:
        try:
            return items.put_nowait(item)
        except queue.Full:
            await asyncio.sleep(_LOOK_SECONDS)
