"""A server that times the steps of its loop: `python -m benchmarks.million.stepping FILE FLAG…`.

A step is one callback of the loop, in processor time of the loop's thread: what other processes and
other threads take of the core does not count. The longest one is kept in a small file that the
client maps too. It runs on asyncio's own loop, whose callbacks can be timed; those of
uvloop cannot.
"""

from __future__ import annotations

import asyncio
import gc
import mmap
import os
import sys
import time
from pathlib import Path
from struct import Struct
from typing import Any

LONGEST = Struct("=d200s")


class Steps:
    """The longest step since the client has last asked, in seconds, and what ran in it."""

    def __init__(self, file: Path, *, make: bool = False) -> None:
        if make:
            file.write_bytes(bytes(mmap.PAGESIZE))
        with file.open("r+b") as opened:
            self._map = mmap.mmap(opened.fileno(), mmap.PAGESIZE)

    def take(self) -> tuple[float, str]:
        """Returns the longest step, and what ran in it; begins anew."""
        seconds, name = LONGEST.unpack_from(self._map)
        LONGEST.pack_into(self._map, 0, 0.0, b"")
        return float(seconds), name.rstrip(b"\0").decode(errors="replace")

    def watch(self) -> None:
        """Times every callback of the loops of this process from now on."""
        run, kept = asyncio.Handle._run, self._map  # noqa: SLF001  # every callback goes through it
        collected = 0.0
        collecting = 0.0

        def note_collection(phase: str, _about: dict[str, int]) -> None:
            nonlocal collected, collecting
            if phase == "start":
                collecting = time.thread_time()
            else:
                collected += time.thread_time() - collecting

        def timed(handle: asyncio.Handle) -> None:
            nonlocal collected
            collected, began = 0.0, time.thread_time()
            run(handle)
            seconds = time.thread_time() - began
            if seconds > LONGEST.unpack_from(kept)[0]:
                name = f"{_name_of(handle)}; garbage collector {collected * 1e3:.1f} ms"
                LONGEST.pack_into(kept, 0, seconds, name.encode()[:200])

        gc.callbacks.append(note_collection)
        setattr(asyncio.Handle, run.__name__, timed)


def _name_of(handle: Any) -> str:
    """Returns what a callback is, or where the task waits that it has moved on."""
    callback: Any = handle._callback  # noqa: SLF001  # as in its `repr`
    task = getattr(callback, "__self__", None)
    if not isinstance(task, asyncio.Task):
        return str(getattr(callback, "__qualname__", callback))
    names: list[str] = []
    waiting: Any = task.get_coro()
    while (frame := getattr(waiting, "cr_frame", None)) is not None:
        names.append(f"{waiting.__name__}:{frame.f_lineno}")
        waiting = waiting.cr_await
    return " ".join(names[-4:]) or str(getattr(task.get_coro(), "__qualname__", task))


def main() -> int:
    """Serves until SIGTERM; returns the exit code."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from jobline_server.cli.plain import serve  # noqa: PLC0415  # it sets up the allocator

    Steps(Path(sys.argv[1])).watch()
    return serve([*sys.argv[2:], "--no-uvloop"])


if __name__ == "__main__":
    sys.exit(main())
