"""Ids that no two clients share, made without asking anybody."""

from __future__ import annotations

import itertools
import os

from jobline._forks import PerProcess


class RequestIds:
    """Makes request ids: a random part once per process, then a counter. Safe to share between
    threads.
    """

    def __init__(self) -> None:
        self._parts = PerProcess(lambda: (os.urandom(12).hex(), itertools.count(1)))

    def __call__(self) -> str:
        """Returns a new id of at most 64 bytes."""
        prefix, numbers = self._parts()
        return f"{prefix}-{next(numbers)}"
