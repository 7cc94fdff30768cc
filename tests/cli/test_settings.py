"""Settings of a queue as words."""

from __future__ import annotations

import pytest

from jobline.cli.exits import Mistake
from jobline.cli.settings import SETTINGS, change, rows
from jobline.v1 import job_pb2
from jobline.v1.queue_pb2 import QueueSettings


def test_words_change_the_message_and_name_the_fields():
    settings = QueueSettings()
    words = ["lease=90s", "backoff.kind=fixed", "backoff.base=2s", "min_ack_level=buffered"]
    fields = change(settings, [*words, "non_retryable_error_types=ValueError, KeyError"])
    assert fields == ["lease", "backoff", "min_ack_level", "non_retryable_error_types"]
    assert settings.lease.seconds == 90
    assert settings.backoff.kind == job_pb2.BACKOFF_KIND_FIXED
    assert settings.non_retryable_error_types == ["ValueError", "KeyError"]


def test_an_empty_value_takes_a_setting_back():
    settings = QueueSettings(max_attempts=5)
    assert change(settings, ["max_attempts="]) == ["max_attempts"]
    assert not settings.HasField("max_attempts")


def test_what_is_shown_is_what_was_typed():
    words = {
        "lease": "45s",
        "max_attempts": "0",
        "backoff.kind": "exponential",
        "backoff.jitter": "0.25",
        "retention.remove_on_fail": "true",
        "retention.count": "10",
        "min_ack_level": "fsynced",
        "max_waiting": "1000",
        "non_retryable_error_types": "A,B",
    }
    settings = QueueSettings()
    change(settings, [f"{key}={value}" for key, value in words.items()])
    assert dict(rows(settings)) == words | {"lease": "45 s"}


def test_a_queue_of_defaults_shows_nothing():
    assert rows(QueueSettings()) == []


def test_every_setting_of_the_protocol_can_be_typed():
    fields = {field.name for field in QueueSettings.DESCRIPTOR.fields}
    assert {key.partition(".")[0] for key in SETTINGS} == fields


@pytest.mark.parametrize(
    "word",
    ["lease", "colour=red", "lease=soon", "max_attempts=many", "retention.remove_on_fail=perhaps"],
)
def test_what_is_no_setting_is_refused(word):
    with pytest.raises(Mistake):
        change(QueueSettings(), [word])


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("max_attempts=many", "max_attempts: 'many' is not a whole number"),
        ("backoff.jitter=some", "backoff.jitter: 'some' is not a number"),
    ],
)
def test_what_is_no_number_is_said_in_words(word, said):
    """And not as Python says it."""
    with pytest.raises(Mistake, match=said):
        change(QueueSettings(), [word])
