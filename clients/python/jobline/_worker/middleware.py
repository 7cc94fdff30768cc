"""Middleware: what a program wraps around every handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from jobline._context import Context


class Middleware:
    """Base class; override one method or both. The first of a worker's list is the outermost.

    It wraps each call of a handler. `contexts` are the jobs of that call: one, or those of a
    batch. What `call_next` returns is what the handler returned (for a batch handler, its answers
    for all jobs), what it raises is the handler's error; return or raise something else to change
    the outcome. A payload that cannot be read fails before any middleware is called.
    """

    async def around(
        self, contexts: Sequence[Context], call_next: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Wraps async handlers."""
        return await call_next()

    def around_plain(self, contexts: Sequence[Context], call_next: Callable[[], Any]) -> Any:
        """Wraps plain handlers, in their thread."""
        return call_next()


def wrapped(
    middleware: Sequence[Middleware],
    contexts: Sequence[Context],
    call: Callable[[], Coroutine[Any, Any, Any]],
) -> Coroutine[Any, Any, Any]:
    """Calls an async handler through all middleware."""
    for layer in reversed(middleware):
        call = partial(layer.around, contexts, call)
    return call()


def wrapped_plain(
    middleware: Sequence[Middleware], contexts: Sequence[Context], call: Callable[[], Any]
) -> Any:
    """Calls a plain handler through all middleware."""
    for layer in reversed(middleware):
        call = partial(layer.around_plain, contexts, call)
    return call()
