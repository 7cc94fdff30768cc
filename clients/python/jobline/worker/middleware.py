"""Middleware: what a program wraps around every handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from jobline.context import Context


class Middleware:
    """Base class; override one method or both. The first of a worker's list is the outermost.

    What `call_next` returns is the handler's value, what it raises the handler's error; return or
    raise something else to change the outcome. Batch handlers are not wrapped.
    """

    async def around(self, context: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
        """Around async handlers."""
        return await call_next()

    def around_plain(self, context: Context, call_next: Callable[[], Any]) -> Any:
        """Around plain handlers, in their thread."""
        return call_next()


def wrapped(
    middleware: Sequence[Middleware], context: Context, call: Callable[[], Coroutine[Any, Any, Any]]
) -> Coroutine[Any, Any, Any]:
    """Calls an async handler through all middleware."""
    for layer in reversed(middleware):
        call = partial(layer.around, context, call)
    return call()


def wrapped_plain(
    middleware: Sequence[Middleware], context: Context, call: Callable[[], Any]
) -> Any:
    """Calls a plain handler through all middleware."""
    for layer in reversed(middleware):
        call = partial(layer.around_plain, context, call)
    return call()
