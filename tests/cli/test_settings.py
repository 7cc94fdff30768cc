"""Settings of a queue as words."""

from __future__ import annotations

import pytest

from jobline import AckLevel, Backoff, BackoffKind, QueueSettings, RateLimit, Retention
from jobline.cli.exit_codes import UsageError
from jobline.cli.setting_values import parse_rate
from jobline.cli.settings import SETTINGS, changes, rows
from jobline.v1 import queue_pb2


def test_words_become_keywords():
    words = ["lease=90s", "backoff.kind=fixed", "backoff.base=2s", "min_ack_level=buffered"]
    words.append("non_retryable_error_types=ValueError, KeyError")
    assert changes(QueueSettings(), words) == {
        "lease": 90,
        "backoff": Backoff(kind=BackoffKind.FIXED, base=2),
        "min_ack_level": AckLevel.BUFFERED,
        "non_retryable_error_types": ("ValueError", "KeyError"),
    }


def test_a_part_is_changed_beside_what_the_queue_has():
    settings = QueueSettings(backoff=Backoff(base=2), retention=Retention(count=5))
    assert changes(settings, ["backoff.jitter=0.5", "retention.count="]) == {
        "backoff": Backoff(base=2, jitter=0.5),
        "retention": None,
    }


def test_an_empty_value_takes_a_setting_back():
    settings = QueueSettings(max_attempts=5)
    assert changes(settings, ["max_attempts="]) == {"max_attempts": None}


def test_what_is_shown_is_what_was_typed():
    words = {
        "lease": "45s",
        "max_attempts": "0",
        "backoff.kind": "exponential",
        "backoff.jitter": "0.25",
        "retention.remove_on_fail": "true",
        "retention.count": "10",
        "retention.delete_after": "2h",
        "min_ack_level": "fsynced",
        "max_waiting": "1000",
        "max_waiting_bytes": "5000",
        "rate": "100/1m/20",
        "ageing": "10m/5/50",
        "objective": "99.5%/30s",
        "concurrency": "3",
        "non_retryable_error_types": "A,B",
    }
    made = QueueSettings(
        **changes(QueueSettings(), [f"{key}={value}" for key, value in words.items()])
    )
    kept = QueueSettings.from_message(made.to_message())
    assert dict(rows(kept)) == words | {"lease": "45 s", "retention.delete_after": "2 h"}


def test_a_list_of_pauses_and_a_growing_pause_replace_each_other():
    listed = QueueSettings(**changes(QueueSettings(), ["backoff.delays=1s,1m", "backoff.jitter=0"]))
    assert dict(rows(listed)) == {"backoff.delays": "1 s,1 min", "backoff.jitter": "0.0"}
    growing = QueueSettings(**changes(listed, ["backoff.base=2s"]))
    assert dict(rows(QueueSettings.from_message(growing.to_message()))) == {
        "backoff.base": "2 s",
        "backoff.jitter": "0.0",
    }
    back = QueueSettings(**changes(listed, ["backoff.delays="]))
    assert dict(rows(back)) == {"backoff.jitter": "0.0"}


def test_a_queue_of_defaults_shows_nothing():
    assert rows(QueueSettings()) == []


def test_every_setting_of_the_protocol_can_be_typed():
    fields = {field.name for field in queue_pb2.QueueSettings.DESCRIPTOR.fields}
    assert {key.partition(".")[0] for key in SETTINGS} == fields


@pytest.mark.parametrize(
    "word",
    ["lease", "colour=red", "lease=soon", "max_attempts=many", "retention.remove_on_fail=perhaps"],
)
def test_what_is_no_setting_is_refused(word):
    with pytest.raises(UsageError):
        changes(QueueSettings(), [word])


@pytest.mark.parametrize(("text", "span"), [("60/m", 60), ("60/1m", 60), ("60/2s", 2)])
def test_a_unit_alone_is_one_of_it(text, span):
    assert parse_rate(text) == RateLimit(rate=60, period=span)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("max_attempts=many", "max_attempts: 'many' is not a whole number"),
        ("backoff.jitter=some", "backoff.jitter: 'some' is not a number"),
    ],
)
def test_what_is_no_number_is_said_in_words(word, said):
    """And not as Python says it."""
    with pytest.raises(UsageError, match=said):
        changes(QueueSettings(), [word])
