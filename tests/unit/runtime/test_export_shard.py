"""What of a shard is exported, held and lost."""

from __future__ import annotations

import pytest

from jobline_server.history.files import NotEncoded
from jobline_server.history.rows import ROWS_PER_ENTRY
from jobline_server.runtime import export_shard
from jobline_server.runtime.export_shard import ShardExport, witness_of


def exported(export: ShardExport, offset: int) -> int:
    """Notes that all up to an offset was stored, but for what is held; returns how far it is."""
    export.offset = offset
    export.note_stored()
    return export.stored


def broken(_applied: object) -> None:
    raise RuntimeError("a fault")


def test_an_entry_whose_rows_cannot_be_made_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    export = ShardExport(0, exported=4)
    export.take(5, [])
    monkeypatch.setattr(export_shard, "rows_of", broken)
    export.take(6, [])
    monkeypatch.undo()
    export.take(7, [])
    assert (export.held_from, export.faults, export.lost) == (6, 1, 0)
    assert exported(export, 7) == 5


def test_the_first_of_several_held_entries_counts() -> None:
    export = ShardExport(0, exported=4)
    error = RuntimeError("a fault")
    export.hold_failed(
        [NotEncoded(9 * ROWS_PER_ENTRY + 3, error), NotEncoded(7 * ROWS_PER_ENTRY, error)]
    )
    assert (export.held_from, exported(export, 10)) == (7, 6)


def test_what_is_given_up_is_lost_once() -> None:
    export = ShardExport(0, exported=4)
    export.hold(6, RuntimeError("a fault"))
    export.hold(8, RuntimeError("a fault"))
    for _ in range(2):
        export.give_up()
        assert (export.held_from, export.lost) == (None, 2)
    assert exported(export, 9) == 9


def test_a_start_skips_what_was_exported_and_counts_what_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    export = ShardExport(0, exported=4)
    taken: list[int] = []
    monkeypatch.setattr(export, "take", lambda offset, _applied: taken.append(offset))
    witness = witness_of(export)
    witness(4, [], 10)
    witness(8, [], 10)
    assert (taken, export.lost) == ([8], 3)


def test_a_fault_that_happens_again_at_a_start_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_shard, "rows_of", broken)
    export = ShardExport(0, exported=4)
    witness_of(export)(5, [], 10)
    assert (export.held_from, export.lost, export.faults) == (None, 1, 1)
