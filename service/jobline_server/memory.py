"""The memory of the process: how its allocator and its garbage collector are set.

A server's messages are large and gone within milliseconds, its jobs are many and stay. The defaults
are made for neither: glibc gives the pages of each large message back to the kernel, which clears
them again for the next one, and Python looks for cycles among jobs, which have none. This module
knows nothing of jobs.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable

# Parameters of mallopt(3), with their numbers in glibc's <malloc.h>.
_TRIM_THRESHOLD = -1
_TOP_PAD = -2
_MMAP_THRESHOLD = -3
# Blocks up to this size come from the heap; it is the most that glibc takes.
HEAP_BLOCK_BYTES = 32 << 20
# The heap shrinks when so much lies free at its end, and grows by so much.
HEAP_SPARE_BYTES = 64 << 20
HEAP_STEP_BYTES = 1 << 20

# A look for cycles stops the loop, and walks what was made since the last one and still lives. So
# it comes between turns, when what calls made for themselves is gone, and often enough: what takes
# this long to make takes a fraction of it to walk. What it has walked is old, and not walked again.
LOOK_SECONDS = 0.02
# All that lives is walked once so many objects more were made than went, between one look and the
# next: after 50 million jobs.
GROWN_MAX = 100_000_000
# Where no turn ends for so long that this many were made, Python looks by itself.
GC_THRESHOLDS = (50_000, 5, 25_000)


def tune() -> None:
    """Before anything is loaded: recovery makes as many objects as the busiest hour."""
    gc.set_threshold(*GC_THRESHOLDS)
    keep_heap()


def keep_heap() -> bool:
    """Has glibc keep what large messages leave; returns whether it does. Other libraries (musl,
    macOS) have no such settings.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    settings = (
        (_MMAP_THRESHOLD, HEAP_BLOCK_BYTES),
        (_TRIM_THRESHOLD, HEAP_SPARE_BYTES),
        (_TOP_PAD, HEAP_STEP_BYTES),
    )
    return all(mallopt(parameter, value) == 1 for parameter, value in settings)


class Looks:
    """The looks for cycles of a server that works. `time`: in seconds, as the loop has it."""

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        self._due = 0.0
        self._grown = 0

    def turn_ended(self) -> None:
        """Looks if it is time."""
        if self._time() < self._due:
            return
        self._grown += gc.get_count()[0]
        if self._grown < GROWN_MAX:
            gc.collect(1)
        else:
            gc.collect()
            self._grown = 0
        self._due = self._time() + LOOK_SECONDS


def freeze() -> None:
    """After the start: what was loaded stays, so the collector never looks at it again."""
    gc.collect()
    gc.freeze()


def leave() -> None:
    """Before the process ends: Python would walk millions of jobs for cycles once more."""
    gc.freeze()
