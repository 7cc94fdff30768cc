"""The Python worker among those of other languages, for `test_three_languages.py`:

    python mixed_worker.py ADDRESS QUEUE RECORD

The payload is how many milliseconds a job takes. Each line of the record is written in one call.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from jobline import Context, Worker

ADDRESS, QUEUE, RECORD = sys.argv[1], sys.argv[2], Path(sys.argv[3])

worker = Worker(ADDRESS, concurrency=4)
record = RECORD.open("a", buffering=1)


@worker.handler(QUEUE)
async def take_time(milliseconds: int, context: Context) -> str:
    """Takes as long as it is told."""

    def note(what: str) -> None:
        record.write(f"{what} {context.id} {context.delivery} {time.time() * 1_000:.0f}\n")

    note("begin")
    try:
        await asyncio.sleep(milliseconds / 1_000)
    except asyncio.CancelledError:
        note("stop")
        raise
    note("end")
    return "python"


worker.run()
