"""Apply as a whole: one function a fact, and what it does not know it cannot do."""

from __future__ import annotations

import pytest

from jobline_server.engine import apply
from jobline_server.engine.queue_entries import QueuePaused


def test_functions_are_named_after_their_facts():
    """Who looks for `JobsLeased` finds `apply_jobs_leased`."""
    for fact, function in apply.APPLY.items():
        words = "".join(
            "_" + letter.lower() if letter.isupper() else letter for letter in fact.__name__
        )
        assert function.__name__ == f"apply{words}"


def test_fact_finds_its_function(world):
    world.row(key="a")
    apply.apply(world.shard, QueuePaused(0, "q", "", ""), 1)
    assert world.shard.queues["q"].paused


def test_what_is_no_fact_is_refused(world):
    with pytest.raises(KeyError):
        apply.apply(world.shard, object(), 1)  # type: ignore[arg-type]
