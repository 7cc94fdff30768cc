"""What of a shard is exported, held and lost."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from jobline_server.engine.effects import Applied
from jobline_server.history.files import NotEncoded
from jobline_server.history.rows import ROWS_PER_ENTRY, Rows
from jobline_server.runtime import export_shard, pace
from jobline_server.runtime.export_shard import ShardExport, witness_of

A_FACT = Applied(cast("Any", None), 1, [])


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
    export.take(6, [A_FACT])
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
    witness_of(export)(5, [A_FACT], 10)
    assert (export.held_from, export.lost, export.faults) == (None, 1, 1)


@pytest.fixture
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of the loop makes the rows of one fact: one."""
    monkeypatch.setattr(pace, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(export_shard, "rows_of", lambda applied: [Rows(1, {}) for _ in applied])


@pytest.mark.usefixtures("one_at_a_time")
async def test_rows_of_an_entry_are_made_in_steps_of_the_loop() -> None:
    """Those of a commit that ended twenty thousand jobs, each with options of its own, took up to
    28 ms. None are there before all are.
    """
    export = ShardExport(0, exported=4)
    export.take_in_steps(5, [A_FACT] * 3)
    export.take_in_steps(6, [A_FACT])
    steps = 0
    while export.rows.journal_offset < 6:
        assert (export.has_any(), export.has_last_only()) == (True, False)
        assert export.rows.count == (0 if export.rows.journal_offset == 4 else 3)
        await asyncio.sleep(0)
        steps += 1
    assert steps > 3
    assert (export.rows.count, export.has_last_only()) == (4, True)


@pytest.mark.usefixtures("one_at_a_time")
async def test_who_stores_waits_for_all_rows() -> None:
    export = ShardExport(0, exported=4)
    export.take_in_steps(5, [A_FACT] * 3)
    export.take_in_steps(6, [A_FACT])
    catching_up = asyncio.ensure_future(export.catch_up())
    await asyncio.sleep(0)
    export.take_in_steps(7, [A_FACT] * 90)
    await catching_up
    # What came meanwhile is for the next time: who waits would never have done.
    assert (export.rows.journal_offset, export.rows.count) == (6, 4)
    await export.catch_up()
    assert (export.rows.journal_offset, export.rows.count) == (7, 94)


@pytest.mark.usefixtures("one_at_a_time")
async def test_few_entries_wait_for_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that comes too soon makes rows of those before it, or memory would have no bound."""
    monkeypatch.setattr(export_shard, "LINE_MAX", 2)
    export = ShardExport(0, exported=4)
    for offset in range(5, 15):
        export.take_in_steps(offset, [A_FACT] * 3)
    assert export.rows.journal_offset == 12
    await export.catch_up()
    assert (export.rows.journal_offset, export.rows.count) == (14, 30)
