"""A worker of entities in a process of its own, for tests that kill it.

    python entity_worker.py SERVER DIRECTORY

Each entity has a file in the directory, with the number of its last step: what a database would be.
What a method does is a line in `steps`, written in one call.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from jobline import Entity, Worker, entity_method

SERVER, DIRECTORY = sys.argv[1], Path(sys.argv[2])


class Walker(Entity, kind="walker"):
    """Takes one step after the other, and remembers the last one."""

    async def on_activate(self) -> None:
        file = DIRECTORY / self.key
        self.last = int(file.read_text()) if file.exists() else 0
        self._note("activate", self.last)

    @entity_method
    async def step(self, number: int) -> int:
        self._note("begin", number)
        await asyncio.sleep(0.02)
        self._note("memory", self.last)
        self.last = number
        # As a whole, or not at all.
        written = DIRECTORY / f".{self.key}.{os.getpid()}"
        written.write_text(str(number))
        written.replace(DIRECTORY / self.key)
        self._note("end", number)
        return number

    def _note(self, what: str, number: int) -> None:
        line = f"{what} {self.key} {number} {os.getpid()}\n"
        with (DIRECTORY / "steps").open("a") as file:
            file.write(line)


worker = Worker(SERVER, concurrency=3, window=3)
worker.add_entity(Walker, max_active=5)
worker.run()
