"""How shards are said to be."""

from __future__ import annotations

import pytest

from jobline_server.runtime.health import ClosedShard, Health


@pytest.mark.parametrize(
    ("health", "word"), [(Health.FENCED, "fenced"), (Health.UNKNOWN, "unknown")]
)
def test_a_lost_shard_is_a_line_for_operators(health: Health, word: str) -> None:
    """Its number, how it was lost, and why."""
    lost = ClosedShard(3, 7, 44, 40, health, "another process has it")
    assert str(lost) == f"shard 3 is not served any more ({word}): another process has it"
