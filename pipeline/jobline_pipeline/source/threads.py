"""Runs an asynchronous generator in a thread: what it waits for comes while others compute."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, suppress
from typing import Any, TypeVar

T = TypeVar("T")

_END = object()
# How soon a full queue is looked at again by the thread that fills it.
_LOOK_SECONDS = 0.002


def iterate(make: Callable[[], AsyncGenerator[T, None]], *, ahead: int = 4) -> Iterator[T]:
    """Yields what a generator yields, up to `ahead` items read in advance; raises what it raises.
    A caller that stops early cancels it.
    """
    items: queue.Queue[Any] = queue.Queue(ahead)
    loop = asyncio.new_event_loop()
    task = loop.create_task(_read(make, items))
    thread = threading.Thread(target=_run, args=(loop, task), name="jobline-source", daemon=True)
    thread.start()
    try:
        while (item := items.get()) is not _END:
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        with suppress(RuntimeError):  # the loop is over
            loop.call_soon_threadsafe(task.cancel)
        thread.join()


def _run(loop: asyncio.AbstractEventLoop, task: asyncio.Task[None]) -> None:
    try:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


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
