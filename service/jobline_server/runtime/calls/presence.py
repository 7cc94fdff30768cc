"""Presence: which workers connect, and which are lost.

A worker is lost when its stream broke, the time that jobs wait for it is over, and no lease is left
for which it could come back. One that says goodbye is not lost, and one that comes back in time,
with its session or with a new one in place of it, was never away.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from jobline_server.dispatch.frames import Open
from jobline_server.engine.server_notes import ServerNoteKind
from jobline_server.runtime.calls.server_notes import ServerNotes
from jobline_server.runtime.core import Core

# Sessions whose stream broke that are remembered. Of more the oldest count as lost at once.
BROKEN_MAX = 10_000
# Look-ups of sessions in shards that one step makes: some milliseconds.
STEP_LOOKUPS = 20_000
# Queues that the message of a connected worker names: 256 characters each at most.
QUEUES_SHOWN = 5


@dataclass(slots=True)
class _Broken:
    """A worker whose stream broke, and when it is looked at."""

    worker: str
    version: str
    due_ms: int


class Presence:
    """Notes workers that connect and that are lost. `grace_ms`: how long jobs wait for a worker."""

    def __init__(self, core: Core, *, grace_ms: int) -> None:
        self.notes = ServerNotes(core)
        self._core = core
        self._grace_ms = grace_ms
        # By session; the first is due first, as all wait equally long.
        self._broken: dict[str, _Broken] = {}
        for slot in core.slots:
            for holder in slot.shard.clocks.holders.values():
                # Those that held leases when the server stopped.
                self._wait(holder.session_id, holder.worker, holder.version)

    def handle_open(self, first: Open, *, is_known: bool) -> None:
        """Notes a worker that connects; `is_known`: it resumes its session."""
        was_broken = self._broken.pop(first.session, None) is not None
        if not is_known and not was_broken:
            kind, worker = ServerNoteKind.WORKER_CONNECTED, first.worker
            self.notes.add_worker(kind, worker.id, _described(first))

    def handle_break(self, session_id: str, first: Open) -> None:
        """Remembers a worker whose stream broke."""
        self._wait(session_id, first.worker.id, first.worker.version)
        if len(self._broken) > BROKEN_MAX:
            oldest = next(iter(self._broken))
            self._lose(self._broken.pop(oldest))

    def next_lost_ms(self) -> int | None:
        """Returns when the next worker that is away may count as lost, in wall time."""
        first = next(iter(self._broken.values()), None)
        return None if first is None else self._core.clock.wall_at(first.due_ms)

    def step(self) -> int:
        """Notes some of the workers that did not come back in time; returns how many. Call it about
        once a second.
        """
        if self._core.draining or not self._broken:
            # Without a look at the time, which would wake an idle server.
            return 0
        slots, mono_ms, lost = self._core.slots, self._core.now().mono_ms, 0
        shards = [slot.shard for slot in slots]
        most = max(STEP_LOOKUPS // max(len(shards), 1), 1)
        for session_id in list(islice(self._broken, most)):
            if self._broken[session_id].due_ms > mono_ms:
                break
            broken = self._broken.pop(session_id)
            if any(session_id in shard.clocks.holders for shard in shards):
                # A queue may have its jobs wait for longer.
                self._wait(session_id, broken.worker, broken.version)
            else:
                self._lose(broken)
                lost += 1
        return lost

    def _wait(self, session_id: str, worker: str, version: str) -> None:
        if session_id:
            due_ms = self._core.now().mono_ms + self._grace_ms
            self._broken.pop(session_id, None)
            self._broken[session_id] = _Broken(worker, version, due_ms)

    def _lose(self, broken: _Broken) -> None:
        message = f"version {broken.version}" if broken.version else ""
        self.notes.add_worker(ServerNoteKind.WORKER_LOST, broken.worker, message)


def _described(first: Open) -> str:
    """Returns the version of a worker and its queues, in words."""
    names = [name for name, _ in first.queues]
    shown = ", ".join(names[:QUEUES_SHOWN])
    more = f" and {len(names) - QUEUES_SHOWN:,} more" if len(names) > QUEUES_SHOWN else ""
    version = f"version {first.worker.version}; " if first.worker.version else ""
    return f"{version}{'queues' if len(names) > 1 else 'queue'} {shown}{more}"
