"""Ids that no two clients share, made without asking anybody."""

from __future__ import annotations

import itertools
import os


class RequestIds:
    """Request ids: a random part once, then a counter. Safe to share between threads."""

    def __init__(self) -> None:
        self._prefix = os.urandom(12).hex()
        self._numbers = itertools.count(1)

    def __call__(self) -> str:
        """A new id of at most 64 bytes."""
        return f"{self._prefix}-{next(self._numbers)}"
