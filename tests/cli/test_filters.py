"""Filters in words: what each word says, and what is refused with which advice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from jobline.cli.exits import Mistake
from jobline.cli.filters import Filter, FilterError, parse
from jobline.cli.selection import choose, dead_filter, job_filter, needs_ids
from jobline.enums import EndReason, JobState
from jobline.v1 import job_pb2

NOW = datetime(2026, 1, 31, 18, 0, tzinfo=UTC)


def test_words_of_one_argument_and_of_many_say_the_same():
    expected = Filter(queue="mail", states=[JobState.DEAD], error_contains="timeout")
    assert parse(["queue:mail state:dead error:~timeout"], NOW) == expected
    assert parse(["queue:mail", "state:dead", "error:~timeout"], NOW) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("name:welcome", Filter(name="welcome")),
        ("name:-", Filter(name="")),
        ("state:dead,ready", Filter(states=[JobState.DEAD, JobState.READY])),
        ("error:TimeoutError", Filter(error_type="TimeoutError")),
        ('error:~"connection refused"', Filter(error_contains="connection refused")),
        ("older:1h", Filter(before=NOW - timedelta(hours=1))),
        ("newer:90s", Filter(after=NOW - timedelta(seconds=90))),
        ("before:2026-01-31T18:00Z", Filter(before=NOW)),
        ("after:2026-01-31T18:00Z", Filter(after=NOW)),
        ("header.tenant:a:b", Filter(headers={"tenant": "a:b"})),
        (
            "reason:stalled,worker-lost",
            Filter(reasons=[EndReason.STALLED, EndReason.WORKER_LOST]),
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
    with pytest.raises(FilterError, match=said):
        parse([word], NOW)


def test_no_words_are_an_empty_filter():
    assert parse([], NOW).is_empty()
    assert not parse(["name:-"], NOW).is_empty()


def test_words_become_the_filter_of_the_protocol():
    message = job_filter(parse(["queue:mail name:- state:dead older:1h header.a:b"], NOW))
    assert message.queue == "mail"
    assert message.HasField("name")
    assert message.states == [job_pb2.JOB_STATE_DEAD]
    assert message.pushed_before.ToDatetime(tzinfo=UTC) == NOW - timedelta(hours=1)
    assert dict(message.headers) == {"a": "b"}


def test_times_of_dead_jobs_mean_their_death():
    message = dead_filter(parse(["state:dead reason:stalled newer:1h"], NOW))
    assert message.reasons == [job_pb2.END_REASON_STALLED]
    assert message.dead_after.ToDatetime(tzinfo=UTC) == NOW - timedelta(hours=1)


@pytest.mark.parametrize("words", ["state:ready", "header.a:b"])
def test_dead_jobs_are_not_asked_for_what_they_do_not_have(words):
    with pytest.raises(Mistake):
        dead_filter(parse([words], NOW))


def test_reasons_are_for_dead_jobs_only():
    with pytest.raises(Mistake, match="jobline dead"):
        job_filter(parse(["reason:stalled"], NOW))
    assert needs_ids(parse(["reason:stalled"], NOW))


def test_numbers_are_ids_without_repeats():
    assert choose(["7", "5", "7"], everything=False, now=NOW).ids == (7, 5)


@pytest.mark.parametrize(
    ("words", "everything", "said"),
    [([], False, "which jobs"), (["7", "queue:a"], False, "one kind"), (["7"], True, "--all")],
)
def test_a_choice_is_never_guessed(words, everything, said):
    with pytest.raises(Mistake, match=said):
        choose(words, everything=everything, now=NOW)


def test_all_is_an_empty_choice():
    assert choose(None, everything=True, now=NOW).where is None
