"""Configures the allocator and the garbage collector of the process.

A server's messages are large and live for milliseconds; its jobs are many and stay. The defaults
suit neither: glibc returns the pages of each large message to the kernel, which clears them for the
next one, and Python looks for reference cycles among jobs, which have none. This module knows
nothing of jobs.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable

# Parameters of mallopt(3), with their numbers in glibc's <malloc.h>.
_TRIM_THRESHOLD = -1
_TOP_PAD = -2
_MMAP_THRESHOLD = -3
# Blocks up to this size come from the heap; the maximum that glibc allows.
HEAP_BLOCK_BYTES = 32 << 20
# The heap shrinks when this much is free at its end, and grows by steps of this size.
HEAP_SPARE_BYTES = 64 << 20
HEAP_STEP_BYTES = 1 << 20

# A collection of young objects blocks the loop and visits those that were made since the last one
# and still live. So it runs after commits, when the temporary objects of calls are gone, and often:
# the objects made in this time take a fraction of it to visit. Visited objects become old and are
# not visited again.
COLLECT_SECONDS = 0.02
# A collection of all objects runs when this many more objects were made than freed, summed over the
# young collections: after 50 million jobs.
GROWN_MAX = 100_000_000
# If this many objects were made without a collection, Python starts one by itself.
GC_THRESHOLDS = (50_000, 5, 25_000)


def stop_collecting() -> None:
    """Looks for no cycles until `freeze`. Call it before the modules of the server are imported:
    what they make stays, and to visit it again and again is a fifth of the time of a start.
    """
    gc.disable()


def tune() -> None:
    """Configures both. Call it before recovery, which makes as many objects as a busy hour and no
    cycles: until `freeze` nobody looks for any.
    """
    stop_collecting()
    gc.set_threshold(*GC_THRESHOLDS)
    keep_heap()


def keep_heap() -> bool:
    """Makes glibc keep the pages of freed messages; returns whether that worked. Other C libraries
    (musl, macOS) have no such settings.
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


class CycleCollector:
    """Runs the garbage collector of a working server. `time`: the loop's time, in seconds."""

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        self._due = 0.0
        self._grown = 0

    def collect_if_due(self) -> None:
        """Collects young objects, or all, if the last collection was long enough ago."""
        if self._time() < self._due:
            return
        self._grown += gc.get_count()[0]
        if self._grown < GROWN_MAX:
            gc.collect(1)
        else:
            gc.collect()
            self._grown = 0
        self._due = self._time() + COLLECT_SECONDS


def freeze() -> None:
    """Excludes all objects from collections, which begin now. Call it after the start: loaded jobs
    stay, and looking at each of them once would be a third of a second for a million.
    """
    gc.freeze()
    gc.enable()


def collect_all() -> None:
    """Collects what was frozen, too: one of the servers of this process was stopped. It blocks the
    loop for about as long as a start.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def skip_last_collection() -> None:
    """Avoids the collection at the exit of the process, which would visit millions of jobs."""
    gc.freeze()
