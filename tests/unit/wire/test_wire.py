"""The wire room: what goes through a message comes back the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from jobline.v1 import job_pb2, queue_pb2, store_pb2
from jobline_server.engine import values
from jobline_server.engine.dead_letters import AutoRetry, DeadLetters
from jobline_server.engine.rates import RateLimit
from jobline_server.wire import errors, options, settings, times
from jobline_server.wire.identity import IdentityCache

ENUMS = [
    "JobState",
    "AckLevel",
    "BackoffKind",
    "AttemptOutcome",
    "EndReason",
    "LeaseReason",
]

text = st.text(max_size=20)
milliseconds = st.integers(0, 400 * 86_400_000)


def optional(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """The strategy, or None."""
    return st.none() | strategy


backoffs = st.builds(
    values.Backoff,
    kind=optional(st.sampled_from(values.BackoffKind)),
    base_ms=optional(milliseconds),
    max_delay_ms=optional(milliseconds),
    jitter=optional(st.floats(0, 1)),
)
retentions = st.builds(
    values.Retention,
    remove_on_complete=optional(st.booleans()),
    remove_on_fail=optional(st.booleans()),
    age_ms=optional(milliseconds),
    count=optional(st.integers(0, 10**7)),
)
job_options = st.builds(
    values.JobOptions,
    name=text,
    content_type=text,
    headers=st.dictionaries(text, text, max_size=4).map(lambda d: tuple(sorted(d.items()))),
    priority=st.integers(-(2**31), 2**31 - 1),
    lease_ms=optional(milliseconds),
    max_attempts=optional(st.integers(0, 1000)),
    backoff=backoffs,
    max_stalls=optional(st.integers(0, 1000)),
    retention=retentions,
)
rate_limits = st.builds(
    RateLimit,
    rate=st.integers(1, 10**6),
    period_ms=st.integers(10, 10**9),
    burst=optional(st.integers(1, 10**6)),
)
dead_letters = st.builds(
    DeadLetters,
    optional(milliseconds),
    st.booleans(),
    optional(milliseconds),
    optional(st.builds(AutoRetry, milliseconds, st.integers(1, 20))),
)
queue_settings = st.builds(
    values.QueueSettings,
    lease_ms=optional(milliseconds),
    max_attempts=optional(st.integers(0, 1000)),
    backoff=backoffs,
    max_stalls=optional(st.integers(0, 1000)),
    retention=retentions,
    min_ack_level=optional(st.sampled_from(values.AckLevel)),
    max_waiting=optional(st.integers(1, 10**9)),
    non_retryable_error_types=st.lists(text, max_size=3).map(tuple),
    rate=optional(rate_limits),
    concurrency=optional(st.integers(1, 10**6)),
    max_waiting_bytes=optional(st.integers(1, 2**50)),
    dead_letters=dead_letters,
)
job_errors = st.builds(
    values.JobError, type=text, message=text, stack=text, details=st.binary(max_size=20)
)
attempts = st.builds(
    values.Attempt,
    attempt=st.integers(1, 1000),
    delivery=st.integers(0, 2**64 - 1),
    worker=text,
    leased_ms=milliseconds,
    ended_ms=milliseconds,
    outcome=st.sampled_from(values.AttemptOutcome),
    error=optional(job_errors),
    version=text,
)


@given(job_options)
def test_options_come_back_the_same(value: values.JobOptions) -> None:
    """Options survive the message, and its bytes."""
    assert options.options_from_message(options.options_to_message(value)) == value
    stored = job_pb2.JobOptions.FromString(options.serialized_options(value))
    assert options.options_from_message(stored) == value


@given(queue_settings)
def test_settings_come_back_the_same(value: values.QueueSettings) -> None:
    """Settings survive the message."""
    message = queue_pb2.QueueSettings()
    settings.fill_settings(message, value)
    assert settings.settings_from_message(message) == value


@given(attempts)
def test_attempts_come_back_the_same(value: values.Attempt) -> None:
    """Attempts, and the errors in them, survive being stored, and are shown as they were."""
    shown = job_pb2.Attempt()
    errors.fill_attempt(shown, value)
    assert times.milliseconds_of(shown.leased_at) == value.leased_ms
    assert times.milliseconds_of(shown.ended_at) == value.ended_ms
    assert (shown.attempt, shown.delivery, shown.worker) == value[:3]
    assert shown.worker_version == value.version
    assert int(shown.outcome) == value.outcome
    assert shown.HasField("error") == (value.error is not None)
    if value.error is not None:
        assert errors.error_from_message(shown.error) == value.error
    stored = store_pb2.StoredAttempt()
    errors.fill_stored_attempt(stored, value)
    assert errors.attempt_from_stored(stored) == value


@pytest.mark.parametrize("name", ENUMS)
def test_enums_have_the_numbers_of_the_protocol(name: str) -> None:
    """No table stands between the engine's enums and the protocol's."""
    descriptor = job_pb2.DESCRIPTOR.enum_types_by_name[name]
    prefix = descriptor.values[0].name.removesuffix("UNSPECIFIED")
    for member in getattr(values, name):
        if member.value:
            assert descriptor.values_by_name[prefix + member.name].number == member.value


def test_defaults_take_no_byte() -> None:
    """Default options and settings are empty messages."""
    assert options.serialized_options(values.DEFAULT_OPTIONS) == b""
    message = queue_pb2.QueueSettings()
    settings.fill_settings(message, values.DEFAULT_SETTINGS)
    assert message.SerializeToString() == b""


@pytest.mark.parametrize(
    ("nanos", "expected"), [(0, 1000), (1, 1001), (999_999, 1001), (1_000_000, 1001)]
)
def test_a_started_millisecond_counts(nanos: int, expected: int) -> None:
    """Nothing happens earlier than asked."""
    assert times.milliseconds_of(Duration(seconds=1, nanos=nanos)) == expected


def test_a_full_memory_forgets_all_and_goes_on() -> None:
    """The identity cache is bounded, and made-again values are right."""
    made: list[str] = []

    def make(key: str) -> str:
        made.append(key)
        return key.upper()

    cache: IdentityCache[str, str] = IdentityCache(make, entries_max=2)
    keys = ["a", "b", "c"]
    assert [cache.get(key) for key in [*keys, "c"]] == ["A", "B", "C", "C"]
    assert made == keys
    assert len(cache) == 1


@pytest.mark.parametrize(
    "make", [options.serialized_options, options.shared_message], ids=["bytes", "message"]
)
def test_shared_options_are_made_once(
    make: Callable[[values.JobOptions], bytes | Message],
) -> None:
    """The same options object gives the same bytes and message objects."""
    value = values.JobOptions(name="once", priority=3)
    assert make(value) is make(value)
