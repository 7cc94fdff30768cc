"""Memory that the host of a virtual machine has given before it is needed.

A host may give its guest memory at the first write, and take back what has been free for seconds
(free page reporting of virtio's balloon). Whatever grows there waits for the host at each new page:
moving 10 MB of a log into a database took 45 ms where its pages were new to the host, and 15 ms
where they were not. So a process beside what is measured takes what memory is free, and gives it
back in pieces while others need it.

    python -m benchmarks.backed_memory      # says that it is ready; ends with its standard input
"""

from __future__ import annotations

import asyncio
import mmap
import select
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

PIECE_BYTES = 128 << 20
# Left free when it begins, and given back while less than that is: what a server takes in a second.
LEFT_BYTES = 2 << 30
FREE_BYTES = 1 << 30
LOOK_SECONDS = 0.2
READY = b"ready\n"
MEMINFO = Path("/proc/meminfo")
# Of all processes the kernel ends this one first.
_OOM_SCORE = Path("/proc/self/oom_score_adj"), "1000"


@asynccontextmanager
async def backed_memory() -> AsyncIterator[None]:
    """Holds memory ready for as long as the body runs. Waits until it is: half a minute or so."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        if process.stdout is None or await process.stdout.readline() != READY:
            raise OSError("no memory was made ready")
        yield
    finally:
        process.kill()
        await process.wait()


class Held:
    """Memory of this process that was written to, in pieces."""

    def __init__(self) -> None:
        self._pieces: list[mmap.mmap] = []

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def take(self) -> None:
        """Takes memory while more is free than is to be left."""
        while free_bytes() > LEFT_BYTES + PIECE_BYTES:
            piece = mmap.mmap(-1, PIECE_BYTES)
            if hasattr(mmap, "MADV_HUGEPAGE"):
                piece.madvise(mmap.MADV_HUGEPAGE)
            for offset in range(0, PIECE_BYTES, mmap.PAGESIZE):
                piece[offset] = 1
            self._pieces.append(piece)

    def give_back(self) -> None:
        """Gives pieces back while too little is free."""
        while self._pieces and free_bytes() < FREE_BYTES:
            self._pieces.pop().close()


def free_bytes() -> int:
    """Returns how much memory nobody uses, not even as a cache of files."""
    line = next(line for line in MEMINFO.read_text().splitlines() if line.startswith("MemFree:"))
    return int(line.split()[1]) << 10


def main() -> None:
    """Holds memory until standard input ends, or none is left."""
    score, most = _OOM_SCORE
    score.write_text(most)
    held = Held()
    held.take()
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    while held and not select.select([sys.stdin], [], [], LOOK_SECONDS)[0]:
        held.give_back()


if __name__ == "__main__":
    main()
