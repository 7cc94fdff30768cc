"""The memory of the process: how its allocator and its garbage collector are set.

A server's messages are large and gone within milliseconds, its jobs are many and stay. The defaults
are made for neither: glibc gives the pages of each large message back to the kernel, which clears
them again for the next one, and Python looks for cycles among jobs, which have none. This module
knows nothing of jobs; it is called once, around the start.
"""

from __future__ import annotations

import ctypes
import gc

# Parameters of mallopt(3), with their numbers in glibc's <malloc.h>.
_TRIM_THRESHOLD = -1
_TOP_PAD = -2
_MMAP_THRESHOLD = -3
# Blocks up to this size come from the heap; it is the most that glibc takes.
HEAP_BLOCK_BYTES = 32 << 20
# The heap shrinks when so much lies free at its end, and grows by so much.
HEAP_SPARE_BYTES = 64 << 20
HEAP_STEP_BYTES = 1 << 20

# Objects made before the youngest are looked at, and rounds of that before the older ones are. The
# loop stands still meanwhile, and a look walks the ids in each list of them: up to 99 ms in a soak
# with (2,500, 1, …), which makes a small call 6 % cheaper, and up to 25 ms with these. All that
# lives is looked at once for each 150 million, and only if it has grown by a quarter.
GC_THRESHOLDS = (1_000, 5, 25_000)


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


def freeze() -> None:
    """After the start: what was loaded stays, so the collector never looks at it again."""
    gc.collect()
    gc.freeze()
