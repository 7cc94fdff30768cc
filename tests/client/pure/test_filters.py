"""Filters: what each word and keyword says, and what is refused with which advice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobline import AsyncClient, Client, DeadFilter, InvalidArgument, JobFilter
from jobline._enums import EndReason, JobState
from jobline._filter_words import parse
from jobline._filters import chosen
from jobline.v1 import job_pb2

NOW = datetime(2026, 1, 31, 18, 0, tzinfo=UTC)


def test_words_of_one_argument_and_of_many_say_the_same():
    expected = {"queue": "mail", "state": [JobState.DEAD], "error_contains": "timeout"}
    assert parse(["queue:mail state:dead error:~timeout"], NOW) == expected
    assert parse(["queue:mail", "state:dead", "error:~timeout"], NOW) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("name:welcome", {"name": "welcome"}),
        ("name:-", {"name": ""}),
        ("state:dead,ready", {"state": [JobState.DEAD, JobState.READY]}),
        ("error:TimeoutError", {"error_type": "TimeoutError"}),
        ('error:~"connection refused"', {"error_contains": "connection refused"}),
        ("older:1h", {"before": NOW - timedelta(hours=1)}),
        ("newer:90s", {"after": NOW - timedelta(seconds=90)}),
        ("before:2026-01-31T18:00Z", {"before": NOW}),
        ("after:2026-01-31T18:00Z", {"after": NOW}),
        ("tag:eu tag:night,shift", {"tags": ["eu", "night,shift"]}),
        ("header.tenant:a:b", {"headers": {"tenant": "a:b"}}),
        (
            "reason:stalled,worker-lost",
            {"end_reason": [EndReason.STALLED, EndReason.WORKER_LOST]},
        ),
    ],
)
def test_each_word_says_one_thing(word, expected):
    assert parse([word], NOW) == expected


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("mail", "not key:value"),
        ("queue:", "not key:value"),
        ("colour:red", "'colour' is not a word"),
        ("state:gone", "'gone' is not one of scheduled"),
        ("older:soon", "write 90s"),
        ("before:soon", "2026-01-31"),
        ('error:~"open', "quotes do not match"),
        ("error:~connection refused", "quote values with spaces"),
    ],
)
def test_what_is_not_understood_is_named_with_advice(word, said):
    with pytest.raises(InvalidArgument, match=said):
        parse([word], NOW)


def test_no_words_say_nothing():
    assert parse([], NOW) == {}
    assert parse(["name:-"], NOW) == {"name": ""}


def test_words_become_the_filter_of_the_protocol():
    made = JobFilter.parse("queue:mail name:- state:dead older:1h header.a:b tag:t", NOW)
    message = made.to_message()
    assert message.queue == "mail"
    assert message.HasField("name")
    assert message.states == [job_pb2.JOB_STATE_DEAD]
    assert message.pushed_before.ToDatetime(tzinfo=UTC) == NOW - timedelta(hours=1)
    assert dict(message.headers) == {"a": "b"}
    assert list(message.tags) == ["t"]


def test_times_of_dead_jobs_mean_their_death():
    message = DeadFilter.parse("state:dead reason:stalled newer:1h", NOW).to_message()
    assert message.reasons == [job_pb2.END_REASON_STALLED]
    assert message.dead_after.ToDatetime(tzinfo=UTC) == NOW - timedelta(hours=1)


@pytest.mark.parametrize("words", ["state:ready", "header.a:b"])
def test_dead_jobs_are_not_asked_for_what_they_do_not_have(words):
    with pytest.raises(InvalidArgument):
        DeadFilter.parse(words, NOW)


def test_reasons_are_for_dead_jobs_only():
    with pytest.raises(InvalidArgument, match="jobline dead"):
        JobFilter.parse("reason:stalled", NOW)


@pytest.mark.parametrize(
    ("words", "keywords"),
    [
        ("queue:mail state:dead", {"queue": "mail", "state": "dead"}),
        ("state:dead,ready", {"state": ["dead", JobState.READY]}),
        ("error:~refused header.a:b", {"error_contains": "refused", "headers": {"a": "b"}}),
        ("before:2026-01-31T18:00Z", {"before": NOW}),
        ("after:2026-01-31T18:00Z", {"after": "2026-01-31T18:00Z"}),
    ],
)
def test_keywords_say_what_words_say(words, keywords):
    """Trial D6: one vocabulary, typed in two ways."""
    assert JobFilter(**keywords) == JobFilter.parse(words, NOW)


def test_spans_are_measured_once():
    """Trial D6: a filter that was made is the same for each page of a list."""
    began = datetime.now(UTC)
    made = JobFilter(older="1h")
    assert isinstance(made.before, datetime)
    assert began <= made.before + timedelta(hours=1) <= datetime.now(UTC)
    with pytest.raises(InvalidArgument, match="before or older, not both"):
        JobFilter(older=60, before=NOW)


def test_a_call_takes_words_a_filter_and_keywords_over_them():
    """Trial D6: `list("state:dead", queue="mail")`; nothing at all is no filter."""
    both = chosen(JobFilter, "state:dead", {"queue": "mail"}, "list")
    assert both == JobFilter(queue="mail", state="dead")
    assert chosen(JobFilter, both, {"state": "ready"}, "list") == JobFilter(
        queue="mail", state="ready"
    )
    assert chosen(DeadFilter, None, {}, "list") is None
    with pytest.raises(TypeError, match=r"list\(\) got .* 'stat': did you mean 'state'"):
        chosen(JobFilter, None, {"stat": "dead"}, "list")
    with pytest.raises(InvalidArgument, match="'gone' is not one of scheduled"):
        JobFilter(state="gone")  # type: ignore[arg-type]  # that is the mistake


@pytest.mark.parametrize("make", [Client, AsyncClient])
def test_a_mistake_is_refused_at_the_call(make):
    """Trial D6: not when somebody begins to read the list."""
    awaited = make is AsyncClient
    client: Any = AsyncClient("localhost:1") if awaited else Client("localhost:1")
    with pytest.raises(TypeError, match="did you mean 'state'"):
        client.jobs.list(stat="dead")
    with pytest.raises(InvalidArgument, match="write 90s"):
        client.dead.list(older="soon")
    if not awaited:
        client.close()


def test_filters_are_values():
    """Trial D6: frozen, with fields that `help()` shows."""
    made = JobFilter(queue="mail", headers={"a": "b"})
    assert hash(made) == hash(JobFilter(queue="mail", headers={"a": "b"}))
    with pytest.raises(AttributeError):
        made.queue = "other"  # type: ignore[misc]  # that is the mistake
