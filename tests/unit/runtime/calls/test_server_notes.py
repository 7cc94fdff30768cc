"""What is noted of the server itself is bounded, whoever connects how often."""

from __future__ import annotations

from jobline_server.engine.server_entries import ServerNoted
from jobline_server.engine.server_notes import ServerNote, ServerNoteKind
from jobline_server.runtime.calls.server_notes import (
    BURST,
    COMMIT_NOTES,
    PENDING_MAX,
    PER_SECOND,
    ServerNotes,
)
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime

CONNECTED, LOST = ServerNoteKind.WORKER_CONNECTED, ServerNoteKind.WORKER_LOST
STORAGE_LOW = ServerNoteKind.STORAGE_LOW


async def written(runtime: Runtime, notes: ServerNotes) -> list[ServerNote]:
    """Writes notes, and returns those of the fact."""
    found: list[ServerNote] = []
    runtime.core.listen(
        "test",
        lambda batches: found.extend(
            note
            for batch in batches
            for applied in batch.applied
            if isinstance(applied.fact, ServerNoted)
            for note in applied.fact.notes
        ),
    )
    count = notes.write()
    await runtime.core.commits.commit_once()
    assert len(found) == count
    return found


async def test_notes_are_written_in_order_and_once(runtime: Runtime) -> None:
    """What concerns the server goes before workers."""
    notes = ServerNotes(runtime.core)
    notes.add_worker(CONNECTED, "a", "version 1")
    notes.add_worker(LOST, "b", "")
    notes.add_first(STORAGE_LOW, "7 bytes are free")
    now_ms = runtime.core.wall_ms()
    assert await written(runtime, notes) == [
        ServerNote(STORAGE_LOW, now_ms, "", "7 bytes are free"),
        ServerNote(CONNECTED, now_ms, "a", "version 1"),
        ServerNote(LOST, now_ms, "b", ""),
    ]
    assert notes.write() == 0


async def test_a_worker_that_connects_in_a_loop_costs_one_small_commit_a_second(
    runtime: Runtime,
) -> None:
    """The first thousand are named, then ten a second; the others are one number."""
    notes, clock = ServerNotes(runtime.core), runtime.core.clock
    assert isinstance(clock, ManualClock)
    for number in range(10_000):
        notes.add_worker(CONNECTED, f"w{number}", "")
    seen: list[ServerNote] = []
    while found := await written(runtime, notes):
        assert len(found) <= COMMIT_NOTES
        seen += found
    assert [note.worker for note in seen[:BURST]] == [f"w{number}" for number in range(BURST)]
    assert [(note.worker, note.message) for note in seen[BURST:]] == [("", "9,000 more workers")]
    clock.advance(1_000)
    for number in range(10_000):
        notes.add_worker(LOST, f"w{number}", "")
    seen = await written(runtime, notes)
    assert [note.worker for note in seen[:PER_SECOND]] == [f"w{n}" for n in range(PER_SECOND)]
    assert [note.message for note in seen[PER_SECOND:]] == ["9,990 more workers"]


async def test_a_full_disk_has_notes_wait_within_bounds(runtime: Runtime) -> None:
    notes, clock = ServerNotes(runtime.core), runtime.core.clock
    assert isinstance(clock, ManualClock)
    runtime.core.commits.disk_full = True
    for _ in range(3):
        for _ in range(PENDING_MAX):
            notes.add_worker(CONNECTED, "w", "")
        clock.advance(1_000_000)
        assert notes.write() == 0
    runtime.core.commits.disk_full = False
    seen: list[ServerNote] = []
    while found := await written(runtime, notes):
        seen += found
    assert len(seen) == PENDING_MAX + 1
    assert seen[-1].message == "2,000 more workers"
