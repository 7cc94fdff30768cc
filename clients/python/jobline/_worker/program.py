"""A worker as a whole program: its event loop, from the first task to the last, and its signals.

`asyncio.run` would wait for ever for a task that ignores its cancellation, and a handler may. So
what is left is given a moment, and then left behind.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from jobline.errors import InvalidArgument

# Seconds that tasks which the program has left over have to end.
LEFTOVER_SECONDS = 1.0


def run_to_its_end(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs the coroutine of `main` in an event loop of its own, as `asyncio.run` does."""
    _refuse_beside_a_loop()
    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        task = loop.create_task(main())
        try:
            loop.run_until_complete(task)
        finally:
            _end(loop, task)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _refuse_beside_a_loop() -> None:
    """Raises InvalidArgument if an event loop runs here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise InvalidArgument(
        "run() makes an event loop of its own, and one runs here already: "
        "await worker.serve() instead"
    )


def _end(loop: asyncio.AbstractEventLoop, main: asyncio.Task[None]) -> None:
    """Cancels what is left: `main` too, which has the time of its drain, if KeyboardInterrupt or
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


def refuse_in_children() -> None:
    """Raises InvalidArgument in a process of a worker that is being made: it imports the program,
    and one that runs its worker there would make children without end.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise InvalidArgument(
            "this process is one of a worker with processes=, and imports its program: run the "
            'worker below `if __name__ == "__main__":`'
        )


def is_main_thread() -> bool:
    """Returns whether signals can be handled here."""
    return threading.current_thread() is threading.main_thread()


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Has SIGTERM and SIGINT call `stop`. Uses Python's own handlers rather than the loop's: they
    run even while a handler blocks the loop.
    """
    if not is_main_thread():
        raise InvalidArgument(
            "signals=True: Python hands signals to the main thread alone; leave it out here, and "
            "end the worker with worker.stop(), which works from any thread"
        )
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda *_: stop()) for number in numbers]
    try:
        with _woken_by_signals(asyncio.get_running_loop()):
            yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


@contextmanager
def _woken_by_signals(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Has a signal wake the loop. A signal may arrive in another thread, or at the moment before
    the loop begins to wait: Python would run its handler when something else wakes the loop, which
    may be never. So the interpreter writes to a socket that the loop reads.
    """
    woken, waker = socket.socketpair()
    with woken, waker:
        woken.setblocking(False)
        waker.setblocking(False)
        before = signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        if before != -1:  # the loop, or the program, has one of its own, which wakes it as well
            signal.set_wakeup_fd(before)
            yield
            return
        loop.add_reader(woken, _read_away, woken)
        try:
            yield
        finally:
            loop.remove_reader(woken)
            signal.set_wakeup_fd(-1)


def _read_away(woken: socket.socket) -> None:
    with suppress(BlockingIOError):
        woken.recv(4096)
