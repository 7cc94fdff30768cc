"""Apply as a whole: one function a fact, and what it does not know it cannot do."""

from __future__ import annotations

import typing

import pytest

from jobline_server.engine import apply, entries
from jobline_server.engine.entries import KeysExpired


def test_every_fact_has_its_function():
    assert set(apply._APPLY) == set(typing.get_args(entries.Fact))


def test_functions_are_named_after_their_facts():
    """Who looks for `JobsLeased` finds `apply_jobs_leased`."""
    for fact, function in apply._APPLY.items():
        words = "".join(
            "_" + letter.lower() if letter.isupper() else letter for letter in fact.__name__
        )
        assert function.__name__ == f"apply{words}"


def test_fact_finds_its_function(world):
    world.row(key="a")
    apply.apply(world.shard, KeysExpired(0, world.now.wall_ms + 90_000_000_000), 1)
    assert world.shard.keys.records == {}


def test_what_is_no_fact_is_refused(world):
    with pytest.raises(KeyError):
        apply.apply(world.shard, object(), 1)  # type: ignore[arg-type]
