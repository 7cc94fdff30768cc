"""What watchers see of the server itself."""

from __future__ import annotations

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine.effects import Applied
from jobline_server.engine.server_entries import ServerNoted
from jobline_server.engine.server_notes import ServerNote, ServerNoteKind
from jobline_server.runtime.watch.events import event_runs


def test_each_note_is_an_event_with_its_own_time() -> None:
    notes = [
        ServerNote(ServerNoteKind.WORKER_CONNECTED, 3, "w", "queue mail"),
        ServerNote(ServerNoteKind.STORAGE_LOW, 4, "", "7 bytes are free"),
    ]
    runs = event_runs(0, 5, [Applied(ServerNoted(9, notes), 5, [])])
    shared = [run.shared for run in runs]
    assert [(one.at_ms, one.offset, one.queue, one.worker, one.message) for one in shared] == [
        (3, 5, "", "w", "queue mail"),
        (4, 5, "", "", "7 bytes are free"),
    ]
    assert [run.starts for run in runs] == [(), ()]


def test_the_numbers_are_those_of_the_protocol() -> None:
    for kind in ServerNoteKind:
        assert EventKind.Name(EventKind.ValueType(kind)) == f"EVENT_KIND_{kind.name}"
