"""Options and times, as the protocol wants them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline import (
    AckLevel,
    Backoff,
    BackoffKind,
    InvalidArgument,
    JobOptions,
    Pushed,
    PushOutcome,
    Retention,
)
from jobline._option_messages import options_message
from jobline._push.push_middleware import Outgoing
from jobline._times import from_duration, to_duration, to_timestamp
from jobline.v1 import job_pb2


@pytest.mark.parametrize("wrong", ["ab", 5, ["ab"], [{"a": "1", "b": "2"}], [("a", "1"), "bc"]])
@pytest.mark.parametrize("given", [None, {"a": "1"}])
def test_headers_that_are_no_mapping_are_refused_by_name(wrong, given):
    """Also those that a dict could be made of, letter by letter or key by key."""
    said = r"options\.headers: must be a mapping of text to text, not "
    job = Outgoing("q", b"", JobOptions(headers=given))
    for make in (lambda: JobOptions(headers=wrong), lambda: job.with_headers(wrong)):
        with pytest.raises(InvalidArgument, match=said) as refused:
            make()
        assert refused.value.field == "options.headers"


@pytest.mark.parametrize("pairs", [[("a", "1")], (["a", "1"],), iter([("a", "1")])])
def test_headers_may_be_given_as_pairs(pairs):
    """As a dict takes them."""
    assert JobOptions(headers=pairs).headers == {"a": "1"}


def test_options_become_the_message_of_the_protocol():
    """Every field, and only those that were said."""
    options = JobOptions(
        name="n",
        content_type="c",
        headers={"a": "b"},
        priority=-1,
        lease=timedelta(seconds=2),
        max_attempts=0,
        backoff=Backoff(kind=BackoffKind.FIXED, base=0.25, max_delay=3, jitter=0.0),
        max_stalls=1,
        retention=Retention(remove_on_complete=True, age=60, count=5, delete_after=30),
        tags=["b", "a", "b"],
        cost=7,
        delivery="once",
        min_worker_version="1.2",
        slots=3,
        lifo=True,
        retry_until=datetime(2026, 1, 1, tzinfo=UTC),
    )
    message = options_message(options)
    assert (message.name, message.content_type, dict(message.headers)) == ("n", "c", {"a": "b"})
    assert (message.priority, message.max_attempts, message.max_stalls) == (-1, 0, 1)
    assert (message.lease.seconds, message.cost) == (2, 7)
    assert (message.backoff.kind, message.backoff.base.nanos) == (1, 250_000_000)
    assert message.backoff.HasField("jitter")
    assert (message.retention.remove_on_complete, message.retention.age.seconds) == (True, 60)
    assert message.retention.delete_after.seconds == 30
    assert not message.retention.HasField("remove_on_fail")
    assert (message.lifo, message.retry_until.seconds) == (True, 1_767_225_600)
    assert list(message.tags) == ["a", "b"]
    assert (message.min_worker_version, message.slots) == ("1.2", 3)
    assert message.delivery == job_pb2.DELIVERY_MODE_ONCE
    assert not options_message(JobOptions()).ListFields()


def test_tags_of_merged_options_add_up():
    """As the server does it; unlike other options, none takes the place of another."""
    merged = JobOptions(tags=["a", "b"]).merged(JobOptions(tags=["c", "a"]))
    assert merged.tags == ("a", "b", "c")
    assert JobOptions(tags=[]) == JobOptions()


@pytest.mark.parametrize("wrong", ["ab", 5, [5], [None]])
def test_tags_that_are_no_list_of_text_are_refused_by_name(wrong):
    """Text would be taken letter by letter."""
    with pytest.raises(InvalidArgument, match=r"options\.tags: must be"):
        JobOptions(tags=wrong)


def test_options_are_equal_by_what_they_say():
    """So pushes with equal options share a lane."""
    first, second = (JobOptions(headers={"a": "b"}, lease=3) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    assert first != JobOptions(headers={"a": "c"}, lease=3)
    with pytest.raises(TypeError):
        first.headers["a"] = "c"  # type: ignore[index]  # that is what must not work


def test_later_options_override_earlier_ones_field_by_field():
    """Headers are taken together."""
    merged = JobOptions(name="n", priority=1, headers={"a": "1", "b": "1"}).merged(
        JobOptions(priority=2, headers={"b": "2"})
    )
    assert merged == JobOptions(name="n", priority=2, headers={"a": "1", "b": "2"})
    assert merged.merged(None) is merged


def test_a_list_of_pauses_and_a_growing_pause_override_each_other():
    """As on the server."""
    listed, growing = Backoff(delays=[1, "1m"], jitter=0.5), Backoff(base=2)
    merged = JobOptions(backoff=growing).merged(JobOptions(backoff=listed))
    assert merged.backoff == listed
    assert [one.seconds for one in merged.backoff.to_message().delays] == [1, 60]
    back = merged.merged(JobOptions(backoff=growing)).backoff
    assert back == Backoff(base=2, jitter=0.5)


SOME_OPTIONS = st.builds(
    JobOptions,
    name=st.sampled_from([None, "a", "b"]),
    priority=st.sampled_from([None, 0, 1]),
    headers=st.sampled_from([None, {"a": "1"}, {"a": "2", "b": "2"}]),
    backoff=st.none()
    | st.builds(
        Backoff,
        kind=st.sampled_from([None, *BackoffKind]),
        base=st.sampled_from([None, 2]),
        jitter=st.sampled_from([None, 0.0, 0.5]),
    ),
    retention=st.none() | st.builds(Retention, remove_on_complete=st.sampled_from([None, False])),
)


@given(SOME_OPTIONS, SOME_OPTIONS)
def test_options_merge_as_the_server_merges_them(shared, own):
    """Said at the declaration, at the push or with the job: it makes no difference where."""
    merged = job_pb2.JobOptions()
    merged.MergeFrom(options_message(shared))
    merged.MergeFrom(options_message(own))
    assert options_message(shared.merged(own)) == merged


@pytest.mark.parametrize("seconds", [0, 0.1, 1.5, -1.5, 1e-9, 3600, 86_400 * 400])
def test_spans_survive_the_wire(seconds):
    """To the microsecond, which is what a timedelta holds."""
    assert abs(from_duration(to_duration(seconds)).total_seconds() - seconds) < 1e-6
    assert to_duration(timedelta(seconds=seconds)).seconds == int(seconds)


def test_moments_need_a_time_zone():
    """Whose midnight would it be?"""
    assert to_timestamp(datetime(2025, 1, 1, tzinfo=UTC)).seconds == 1_735_689_600
    with pytest.raises(InvalidArgument, match="no time zone"):
        to_timestamp(datetime(2025, 1, 1))  # noqa: DTZ001  # that is the mistake


@pytest.mark.parametrize(
    ("field", "value"),
    [("priority", 2**40), ("max_attempts", 1.5), ("name", 5), ("headers", {"a": 5})],
)
def test_an_option_that_does_not_fit_is_named(field, value: Any):
    """The library that notices it names neither the field nor the value."""
    with pytest.raises(InvalidArgument) as caught:
        options_message(JobOptions(**{field: value}))
    assert caught.value.field == f"options.{field}"


def test_one_job_is_no_list_of_jobs_to_depend_on():
    """What a push returns is a tuple: its outcome and level would be taken for ids."""
    pushed = Pushed(7, PushOutcome.CREATED, AckLevel.FSYNCED)
    with pytest.raises(InvalidArgument, match="depends_on: must be a list, not one job"):
        JobOptions(depends_on=pushed)
    assert JobOptions(depends_on=[pushed]).depends_on == (7,)
