"""What is noted of the server is a fact that changes nothing of a shard, and has an offset."""

from __future__ import annotations

from jobline_server.engine.decide.server_notes import decide_note_server
from jobline_server.engine.load import Load
from jobline_server.engine.server_entries import ServerNoted
from jobline_server.engine.server_notes import ServerNote, ServerNoteKind
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import Now
from tests.unit.engine.effects_of import take_endings


def test_notes_are_one_fact_without_effects() -> None:
    shard = Shard(0, epoch=1, load=Load())
    notes = [ServerNote(ServerNoteKind.WORKER_LOST, 900, name, "") for name in ("a", "b")]
    decide_note_server(shard, Now(1_000, 5), notes)
    assert shard.entries == [ServerNoted(1_000, notes)]
    assert shard.has_uncommitted()
    assert take_endings(shard) == []
