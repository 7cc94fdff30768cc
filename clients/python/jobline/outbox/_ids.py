"""Ids of rows: UUIDs of version 7 (RFC 9562), which grow with time, and within a process always."""

from __future__ import annotations

import os
import threading
import time
import uuid

_LOCK = threading.Lock()
_last = 0
# The 42 bits of the counter in the middle of an id: 12 before the variant, 30 behind it.
_STEPS = 1 << 42


def new_id() -> str:
    """Returns an id that is greater than all earlier ones of this process."""
    global _last  # noqa: PLW0603  # one order for all threads
    drawn = int.from_bytes(os.urandom(9), "big")
    with _LOCK:
        # A new millisecond starts its counter low, at a random place; within one it goes up.
        first = (time.time_ns() // 1_000_000) * _STEPS + (drawn & 0xFFFFFFFF)
        _last = max(first, _last + 1)
        now = _last
    milliseconds, counter = divmod(now, _STEPS)
    tail = drawn >> 40  # 32 bits
    value = milliseconds << 80 | 0x7 << 76 | (counter >> 30) << 64
    value |= 0b10 << 62 | (counter & 0x3FFFFFFF) << 32 | tail
    return str(uuid.UUID(int=value))
