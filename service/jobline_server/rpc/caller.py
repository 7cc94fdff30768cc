"""The authenticated caller of the running call, where callers are authenticated."""

from __future__ import annotations

from contextvars import ContextVar

from jobline_server.auth.grants import Caller

# Each call runs in a task of the transport, with a context of its own.
CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)
