"""One coroutine in a context of its own, within the task that awaits it.

A task a job would give each job its own `contextvars` and cost more than a small handler does. So
the runner drives the handler's coroutine itself, each step inside a fresh copy of the context:
what a handler sets is gone with it, and a handler that never suspends costs no turn of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from functools import partial
from typing import Any


class Isolated:
    """Awaits a coroutine in a context of its own; calls `on_suspend` once, when it first has to
    wait.
    """

    __slots__ = ("_coroutine", "_on_suspend")

    def __init__(
        self, coroutine: Coroutine[Any, Any, Any], on_suspend: Callable[[], object]
    ) -> None:
        self._coroutine = coroutine
        self._on_suspend = on_suspend

    def __await__(self) -> Generator[Any, Any, Any]:
        context = copy_context()
        coroutine = self._coroutine
        try:
            waits_for = context.run(coroutine.send, None)
        except StopIteration as end:
            return end.value
        self._on_suspend()
        while True:
            # What it waits for goes up to the task as it is, and the task's answer comes back down.
            try:
                answer = yield waits_for
            except GeneratorExit:
                coroutine.close()
                raise
            except BaseException as error:  # noqa: BLE001  # cancellation included: it is the handler's
                step = partial(coroutine.throw, error)
            else:
                step = partial(coroutine.send, answer)
            try:
                waits_for = context.run(step)
            except StopIteration as end:
                return end.value
