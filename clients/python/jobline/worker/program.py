"""A worker as a whole program: its event loop, from the first task to the last.

`asyncio.run` would wait for ever for a task that ignores its cancellation, and a handler may. So
what is left is given a moment, and then left behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

# Seconds that tasks which the program has left over have to end.
LEFTOVER_SECONDS = 1.0


def run_to_its_end(main: Coroutine[Any, Any, None]) -> None:
    """Runs a coroutine in an event loop of its own, as `asyncio.run` does."""
    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        task = loop.create_task(main)
        try:
            loop.run_until_complete(task)
        finally:
            _end(loop, task)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _end(loop: asyncio.AbstractEventLoop, main: asyncio.Task[None]) -> None:
    """Ends what is left: `main` too, which has the time of its drain, if KeyboardInterrupt or
    SystemExit in another task has ended the loop before.
    """
    if not main.done():
        main.cancel()
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(main)
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=LEFTOVER_SECONDS))
    loop.run_until_complete(loop.shutdown_asyncgens())
