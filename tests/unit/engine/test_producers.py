"""The table of producers: what is written and deleted of those that come and go."""

from __future__ import annotations

from jobline_server.engine.changes import KindChanges
from jobline_server.engine.producers import Call, ProducerTable
from jobline_server.engine.split import SplitSet

A, B = b"a" * 16, b"b" * 16


def test_what_is_forgotten_is_deleted_where_it_was_written():
    """One that was never written has nothing to delete."""
    changes = KindChanges(SplitSet())
    table = ProducerTable(changes)
    for producer in (A, B):
        table.remember(Call(producer, 1, 1, 0), 1, 1, 0)
    written = table.records[A]
    written.item_key = table.new_number()
    changes.to_write.discard(A)
    expired_ms = written.expires_ms + 1
    assert (table.find(A, 0), table.find(A, expired_ms)) == (written, None)
    while table.forget(expired_ms + 120_000, 1):
        pass
    assert (changes.to_delete, len(changes.to_write), len(table.records)) == ([1], 0, 0)


def test_volatile_table_forgets_without_noting_what_to_delete():
    """No checkpoint has anything of it."""
    table = ProducerTable(None)
    for producer in (A, B):
        table.remember(Call(producer, 1, 1, 0), 1, 1, 0)
    expired_ms = table.records[A].expires_ms + 120_000
    assert table.forget(expired_ms, 9) == 4
    assert (len(table.records), table.has_any) == (0, False)
