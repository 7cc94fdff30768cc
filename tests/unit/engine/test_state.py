"""What a shard keeps: its own time."""

from __future__ import annotations

from jobline_server.engine.state import Age
from jobline_server.engine.values import Now


def test_time_of_a_shard_does_not_go_back():
    """A fact that was decided before the newest does not set it back."""
    age = Age()
    age.note(2_000, 1_500)
    age.note(9_000, 1_000)
    assert (age.last_ms, age.behind_ms) == (1_500, 500)
    assert age.at(Now(wall_ms=2_500, mono_ms=10)) == 2_000
