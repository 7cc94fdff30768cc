"""The fact of the server itself, between value and message."""

from __future__ import annotations

from jobline.v1 import entry_pb2, event_pb2
from jobline_server.engine.server_entries import ServerNoted
from jobline_server.engine.server_notes import ServerNote, ServerNoteKind
from jobline_server.storage.codec.table import FactRow, FactTable, whole


def fill_server_noted(entry: entry_pb2.Entry, fact: ServerNoted) -> None:
    """Writes it into an entry."""
    entry.server_noted.SetInParent()
    for note in fact.notes:
        message = entry.server_noted.notes.add()
        message.kind = event_pb2.EventKind.ValueType(note.kind)
        message.at_ms = note.at_ms
        message.worker = note.worker
        message.message = note.message


def server_noted(at_ms: int, message: entry_pb2.ServerNoted) -> ServerNoted:
    """Reads it."""
    notes = [
        ServerNote(ServerNoteKind(note.kind), note.at_ms, note.worker, note.message)
        for note in message.notes
    ]
    return ServerNoted(at_ms, notes)


FACTS: FactTable = {
    ServerNoted: FactRow("server_noted", fill_server_noted, server_noted, whole),
}
