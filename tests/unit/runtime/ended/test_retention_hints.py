"""Hints tell retention where something may be due, and nothing about other queues."""

from __future__ import annotations

from jobline_server.engine.values import ENDED_STATES, JobState
from jobline_server.runtime.ended.retention_hints import RetentionHint, RetentionHints
from jobline_server.storage.ended_store import MarkStale, RemoveEnded, RemoveQueue
from tests.storage.ended_reference import DEAD, put

COMPLETED = JobState.COMPLETED


def test_written_jobs_are_noted_by_queue_and_state() -> None:
    hints = RetentionHints()
    hints.note([put(1, queue="a", ended_ms=5), put(2, queue="a", state=DEAD), put(3, queue="b")])
    assert hints.take() == {
        ("a", COMPLETED): RetentionHint(5, is_counted=False),
        ("a", JobState.DEAD): RetentionHint(1_000, is_counted=False),
        ("b", COMPLETED): RetentionHint(1_000, is_counted=False),
    }
    assert hints.take() == {}, "each hint is taken once"


def test_first_of_a_queue_and_state_says_when_something_is_due() -> None:
    """Jobs are written in the order in which they ended."""
    hints = RetentionHints()
    hints.note([put(1, ended_ms=5), put(2, ended_ms=7)])
    hints.note([put(3, ended_ms=9)])
    assert hints.take() == {("emails", COMPLETED): RetentionHint(5, is_counted=False)}


def test_one_job_with_a_count_of_its_own_is_enough() -> None:
    hints = RetentionHints()
    hints.note([put(1, keep_count=2), put(2, queue="b"), put(3, queue="b", keep_count=0), put(4)])
    assert {key[0]: hint.is_counted for key, hint in hints.take().items()} == {
        "emails": True,
        "b": True,
    }


def test_changes_of_ended_jobs_are_no_hints() -> None:
    """They make nothing due that was not."""
    hints = RetentionHints()
    hints.note([MarkStale(1, 1, 5, 5), RemoveEnded(2, 1), RemoveQueue("a")])
    assert hints.take() == {}


def test_queue_with_new_settings_is_checked_in_every_state() -> None:
    """Only the ended store knows when the oldest of its jobs ended."""
    hints = RetentionHints()
    hints.note([put(1, keep_count=3)])
    hints.note_queue("emails")
    hints.note_queue("b", [COMPLETED])
    found = hints.take()
    assert found.pop(("b", COMPLETED)) == RetentionHint(None, is_counted=False)
    assert found.pop(("emails", COMPLETED)) == RetentionHint(None, is_counted=True)
    assert set(found) == {("emails", state) for state in ENDED_STATES - {COMPLETED}}
