"""What is in force: the job's own option, else its queue's setting, else the default."""

from __future__ import annotations

import pytest

from jobline_server.engine import effective, limits
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    DEFAULT_SETTINGS,
    Backoff,
    BackoffKind,
    JobOptions,
    JobState,
    QueueSettings,
    Retention,
)

OURS = QueueSettings(lease_ms=5_000, max_attempts=5, max_stalls=5)
OWN = JobOptions(lease_ms=7_000, max_attempts=7, max_stalls=7)
STEADY = Backoff(jitter=0.0)


def backoff(own: Backoff, queue: Backoff = STEADY, *, attempt: int = 1) -> int:
    options, settings = JobOptions(backoff=own), QueueSettings(backoff=queue)
    return effective.backoff_ms(options, settings, 4711, attempt)


@pytest.mark.parametrize(
    ("what", "default"),
    [
        (effective.lease_ms, limits.LEASE_MS_DEFAULT),
        (effective.max_attempts, limits.MAX_ATTEMPTS_DEFAULT),
        (effective.max_stalls, limits.MAX_STALLS_DEFAULT),
    ],
)
def test_own_option_goes_before_the_queues_setting_before_the_default(what, default):
    assert what(DEFAULT_OPTIONS, DEFAULT_SETTINGS) == default
    assert what(DEFAULT_OPTIONS, OURS) in {5, 5_000}
    assert what(OWN, OURS) in {7, 7_000}


def test_zero_attempts_of_a_job_are_unlimited_whatever_the_queue_says():
    """0 is a choice, not an absence."""
    assert effective.max_attempts(JobOptions(max_attempts=0), OURS) == 0


def test_exponential_backoff_doubles_up_to_its_ceiling():
    """The default: 1 s, 2 s, 4 s … an hour."""
    pauses = [backoff(STEADY, attempt=attempt) for attempt in (1, 2, 3, 4, 11, 12, 1_000)]
    assert pauses == [1_000, 2_000, 4_000, 8_000, 1_024_000, 1_024_000, 1_024_000]
    assert backoff(Backoff(max_delay_ms=5_000), attempt=9) == 5_000


def test_fixed_backoff_stays_as_it_is():
    fixed = Backoff(kind=BackoffKind.FIXED, base_ms=300)
    assert [backoff(fixed, attempt=attempt) for attempt in (1, 5, 50)] == [300, 300, 300]


def test_queue_fills_in_what_a_jobs_backoff_leaves_open():
    """Field by field, not as a whole."""
    queue = Backoff(kind=BackoffKind.FIXED, base_ms=200, jitter=0.0)
    assert backoff(Backoff(), queue, attempt=3) == 200
    assert backoff(Backoff(kind=BackoffKind.EXPONENTIAL), queue, attempt=3) == 800


def test_jitter_keeps_within_its_share_and_is_the_same_each_time():
    """A retry that is computed twice, as in a simulation, waits the same time."""
    options = JobOptions(backoff=Backoff(base_ms=10_000, jitter=0.2))
    pauses = [effective.backoff_ms(options, DEFAULT_SETTINGS, i, 1) for i in range(200)]
    assert all(8_000 <= pause <= 12_000 for pause in pauses)
    assert len(set(pauses)) > 150
    assert pauses == [effective.backoff_ms(options, DEFAULT_SETTINGS, i, 1) for i in range(200)]


@pytest.mark.parametrize(
    ("state", "option", "other"),
    [
        (JobState.COMPLETED, "remove_on_complete", JobState.DEAD),
        (JobState.DEAD, "remove_on_fail", JobState.COMPLETED),
    ],
)
def test_ended_jobs_are_kept_unless_their_end_is_to_be_removed(state, option, other):
    removed = JobOptions(retention=Retention(**{option: True}))
    by_queue = QueueSettings(retention=Retention(**{option: True}))
    kept = JobOptions(retention=Retention(**{option: False}))
    assert effective.is_kept(DEFAULT_OPTIONS, DEFAULT_SETTINGS, state)
    assert not effective.is_kept(removed, DEFAULT_SETTINGS, state)
    assert not effective.is_kept(DEFAULT_OPTIONS, by_queue, state)
    assert effective.is_kept(kept, by_queue, state)
    assert effective.is_kept(removed, by_queue, other)


def test_cancelled_jobs_are_kept():
    """Somebody cancelled them, and may want to undo it."""
    removed = JobOptions(retention=Retention(remove_on_complete=True, remove_on_fail=True))
    assert effective.is_kept(removed, DEFAULT_SETTINGS, JobState.CANCELLED)


def test_a_list_of_pauses_is_taken_one_by_one_and_its_last_one_again():
    """Its jitter is that of any backoff."""
    own = Backoff(delays_ms=(100, 5_000), jitter=0.0)
    assert [backoff(own, attempt=attempt) for attempt in (1, 2, 3, 900)] == [100, *[5_000] * 3]
    jittered = [
        backoff(Backoff(delays_ms=(1_000,), jitter=0.5), attempt=attempt) for attempt in range(1, 9)
    ]
    assert len(set(jittered)) > 1
    assert all(500 <= pause <= 1_500 for pause in jittered)


def test_what_a_job_says_of_its_pauses_goes_before_its_queues():
    """A list before a formula, and a formula before a list."""
    listed = Backoff(delays_ms=(7,), jitter=0.0)
    assert backoff(listed, Backoff(base_ms=9_000)) == 7
    assert backoff(Backoff(base_ms=9_000), listed) == 9_000
    assert backoff(Backoff(), listed) == 7
    assert backoff(Backoff(jitter=0.0), Backoff(delays_ms=(7,))) == 7
