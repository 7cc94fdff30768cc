"""The authenticated caller of the running call, where callers are authenticated."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial

from jobline_server.auth.grants import READ, Caller

# Each call runs in a task of the transport, with a context of its own.
CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)


def readable() -> Callable[[str], bool] | None:
    """Returns what says whether the caller may read a queue; None where it may read all."""
    caller = CALLER.get()
    if caller is None or caller.may_all(READ):
        return None
    return partial(caller.may, READ)
