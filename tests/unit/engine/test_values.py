"""Values: ids, enums, and what is shared."""

from __future__ import annotations

import dataclasses

import pytest

from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    ENDED_STATES,
    WAITING_STATES,
    Attempt,
    AttemptOutcome,
    JobOptions,
    JobState,
    sequence_of,
    shard_of,
)


def test_id_tells_its_shard_and_its_sequence():
    """Which is why any id can be routed without a look-up."""
    job_id = 5 << 43 | 77
    assert (shard_of(job_id), sequence_of(job_id)) == (5, 77)


def test_state_stands_for_its_number_also_as_a_key():
    """A dictionary by state is one by number, as on the wire."""
    assert {JobState.READY: "ready"}[3] == "ready"  # type: ignore[index]
    assert hash(JobState.DEAD) == hash(6)


def test_every_state_waits_is_active_has_ended_or_is_about_to_go():
    """No state is in two of these, and none in no one."""
    rest = {JobState.ACTIVE, JobState.STALE}
    assert sorted([*WAITING_STATES, *ENDED_STATES, *rest]) == sorted(JobState)


def test_options_are_frozen_and_equal_by_content():
    """Jobs share them, so nobody may change them."""
    assert JobOptions(priority=1) == JobOptions(priority=1) != DEFAULT_OPTIONS
    with pytest.raises(dataclasses.FrozenInstanceError):
        DEFAULT_OPTIONS.priority = 1  # type: ignore[misc]


def test_attempt_cannot_be_rewritten():
    """History stays what it was."""
    attempt = Attempt(1, 2, "w1", 3, 4, AttemptOutcome.FAILED)
    with pytest.raises(AttributeError):
        attempt.worker = "w2"  # type: ignore[misc]
