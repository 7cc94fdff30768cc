"""Notes of what happens to the server itself: gathered, and written at most once a second.

A worker that connects in a loop costs one small commit a second, and pushes few events out of the
feed: up to `BURST` workers are noted at once and `PER_SECOND` after that, the others are counted.
What is gathered when the server stops is lost.
"""

from __future__ import annotations

from collections import Counter

from jobline_server.engine.decide.server_notes import decide_note_server
from jobline_server.engine.rates import RateLimit, TokenBucket
from jobline_server.engine.server_notes import ServerNote, ServerNoteKind
from jobline_server.runtime.core import Core

# The shard whose journal has the notes.
HOME = 0
# Workers that are noted one by one.
BURST = 1_000
PER_SECOND = 10
# Notes of one commit, as `entry.proto` says; and those of workers that wait, on a full disk.
COMMIT_NOTES = 200
PENDING_MAX = 1_000


class ServerNotes:
    """Notes that are not written yet; call `write` about once a second."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._pending: list[ServerNote] = []
        self._left_out: Counter[ServerNoteKind] = Counter()
        self._rate = TokenBucket(RateLimit(PER_SECOND, burst=BURST), core.now().mono_ms)

    def add_worker(self, kind: ServerNoteKind, worker: str, message: str) -> None:
        """Notes what happened to a worker, or only counts it if there are too many."""
        now = self._core.now()
        is_full = len(self._pending) >= PENDING_MAX
        if is_full or not self._rate.pays(1, now.mono_ms):
            self._left_out[kind] += 1
        else:
            self._pending.append(ServerNote(kind, now.wall_ms, worker, message))

    def add_first(self, kind: ServerNoteKind, message: str) -> None:
        """Notes what concerns no worker, before all that waits: what is rare, and urgent."""
        self._pending.insert(0, ServerNote(kind, self._core.wall_ms(), "", message))

    def write(self) -> int:
        """Decides on a fact of up to `COMMIT_NOTES` notes; returns how many. Writes none while the
        disk is full, and drops them where the shard of the notes was lost.
        """
        core = self._core
        if HOME not in core.slots:
            self._pending.clear()
            self._left_out.clear()
        has_none = not self._pending and not self._left_out
        if has_none or core.commits.disk_full:
            return 0
        now, home = core.now(), core.slots[HOME]
        room = COMMIT_NOTES - len(ServerNoteKind)
        notes, self._pending = self._pending[:room], self._pending[room:]
        if not self._pending:
            notes += [
                ServerNote(kind, now.wall_ms, "", f"{count:,} more workers")
                for kind, count in sorted(self._left_out.items())
            ]
            self._left_out.clear()
        decide_note_server(home.shard, now, notes)
        core.after_decision(home)
        return len(notes)
