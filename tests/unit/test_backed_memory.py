"""The memory that long benchmarks hold ready."""

from __future__ import annotations

import pytest

from benchmarks import backed_memory
from benchmarks.backed_memory import Held

PIECE = 1 << 20


def test_what_is_free_is_taken_and_given_back_as_others_need_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used, held = [0], Held()

    def free_bytes() -> int:
        return 10 * PIECE - used[0] - PIECE * len(held._pieces)

    monkeypatch.setattr(backed_memory, "free_bytes", free_bytes)
    monkeypatch.setattr(backed_memory, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(backed_memory, "LEFT_BYTES", 3 * PIECE)
    monkeypatch.setattr(backed_memory, "FREE_BYTES", 2 * PIECE)
    held.take()
    assert free_bytes() == 4 * PIECE
    used[0] += 4 * PIECE
    held.give_back()
    assert free_bytes() == 2 * PIECE
    used[0] += 6 * PIECE
    held.give_back()
    assert (bool(held), free_bytes()) == (False, 0)


def test_some_memory_is_free_here() -> None:
    assert backed_memory.free_bytes() > 0
