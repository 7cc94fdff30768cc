"""Periodic task: tells of what happens to the server itself: of workers that connect and are lost,
and of a disk that is nearly full.

A full disk cannot take a note, so it is told of while there is still room: once less is free than
is needed to take pushes again after it was full. It is told of again when there was clearly more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from jobline_server.background.periodic import Counts
from jobline_server.engine.server_notes import ServerNoteKind
from jobline_server.engine.values import Now
from jobline_server.runtime.calls.presence import Presence
from jobline_server.runtime.core import Core
from jobline_server.telemetry.log import logger

LOG = logger("background")

# How much more than the least must be free before a disk can be low again: 5/4.
ENOUGH_NUMERATOR, ENOUGH_DENOMINATOR = 5, 4


@dataclass(slots=True)
class NoteServer:
    """Writes notes of the server. `low_bytes`: less free space is low; 0: none is."""

    core: Core
    presence: Presence
    low_bytes: int
    name: str = "server_notes"
    every_seconds: float = 1.0
    _is_low: bool = field(default=False, init=False)

    async def run_once(self, _now: Now) -> Counts:
        """Looks for lost workers and at the disk; returns how many notes were written."""
        try:
            self._check_disk()
        finally:
            lost, notes = self.presence.step(), self.presence.notes.write()
        return {"lost": lost, "notes": notes}

    async def next_ms(self, _now: Now) -> int | None:
        """Returns when the next worker that is away may count as lost."""
        return self.presence.next_lost_ms()

    def _check_disk(self) -> None:
        free_bytes = self.core.space.free_bytes()
        if free_bytes is None or self.core.commits.disk_full:
            return
        if self._is_low:
            enough = self.low_bytes * ENOUGH_NUMERATOR // ENOUGH_DENOMINATOR
            self._is_low = free_bytes < enough
        elif free_bytes < self.low_bytes:
            self._is_low = True
            LOG.warning("the disk is nearly full", free_bytes=free_bytes)
            message = f"{free_bytes:,} bytes are free"
            self.presence.notes.add_first(ServerNoteKind.STORAGE_LOW, message)
