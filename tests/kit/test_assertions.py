"""What assertions of the fixture `jobline` see, and what they say where they fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from jobline import Client, job
from jobline._blocking.job_admin import JobApi
from jobline._job_values import JobPage
from jobline_server.testing import Jobline
from jobline_server.testing.pushed import contains


@dataclass
class Mail:
    to: str


@job(queue="mail")
def welcome(mail: Mail) -> str:
    return mail.to


@pytest.mark.parametrize(
    ("value", "part", "has"),
    [
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": 2}}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {"b": 1}, False),
        ({"a": "12"}, {"a": "1"}, False),
        ([1, {"a": 1, "b": 2}], [{"b": 2}], True),
        ([1, 2], [3], False),
        ("a text", "text", True),
        (b"bytes", b"yte", True),
        (b"bytes", "bytes", False),
        (7, 7, True),
        (None, None, True),
        ([1], {"a": 1}, False),
    ],
)
def test_a_part_of_a_payload(value: object, part: object, has: bool) -> None:
    assert contains(value, part) is has


def test_it_finds_what_any_client_pushed(jobline: Jobline) -> None:
    with Client() as client:
        pushed = client.push("mail", {"to": "a@b.c"}, name="welcome", tags=["new"])
    assert jobline.assert_pushed(welcome).id == pushed.id
    assert jobline.assert_pushed("welcome", payload=Mail("a@b.c"), tags=["new"]).id == pushed.id
    assert jobline.assert_pushed(queue="mail", state="ready", times=1).id == pushed.id
    jobline.refute_pushed(welcome, payload__contains={"to": "else"})


def test_it_says_what_was_pushed_instead(jobline: Jobline) -> None:
    jobline.client.push("mail", {"to": "a@b.c"}, name="welcome")
    with pytest.raises(AssertionError) as caught:
        jobline.assert_pushed("goodbye", payload__contains={"to": "a"})
    first, *lines = str(caught.value).splitlines()
    assert first == "no job matches: name='goodbye', payload__contains={'to': 'a'}"
    assert "mail/welcome READY {'to': 'a@b.c'}" in lines[1]


def test_it_says_why_a_job_that_is_there_failed(jobline: Jobline) -> None:
    def full(_: object) -> None:
        raise ValueError("no room\n" + "x" * 1_000)

    jobline.work_one(full, {"to": "a@b.c"})
    with pytest.raises(AssertionError) as caught:
        jobline.assert_pushed("goodbye")
    _, _, line = str(caught.value).splitlines()
    assert "SCHEDULED {'to': 'a@b.c'} ValueError: 'no room\\nxxx" in line
    assert len(line) < 400


def test_it_says_that_nothing_was_pushed(jobline: Jobline) -> None:
    with pytest.raises(AssertionError, match="there are:\n  none"):
        jobline.assert_pushed()


def test_it_counts(jobline: Jobline) -> None:
    welcome.push_many(jobline.client, [Mail("a"), Mail("b")])
    with pytest.raises(AssertionError, match="more than 1 jobs match, not 1"):
        jobline.assert_pushed(welcome, times=1)
    with pytest.raises(AssertionError, match="0 jobs match, not 1"):
        jobline.assert_pushed("other", times=1)
    with pytest.raises(AssertionError, match="jobs match: queue='mail'"):
        jobline.refute_pushed(queue="mail")


def test_a_message_is_short(jobline: Jobline) -> None:
    jobline.client.push_many("mail", ["x" * 1_000] * 100)
    with pytest.raises(AssertionError) as caught:
        jobline.assert_pushed("other")
    assert "and more" in str(caught.value)
    assert len(str(caught.value)) < 10_000


def test_it_reads_no_more_than_it_needs(jobline: Jobline, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred thousand jobs it would read them all, for seconds."""
    read: list[int] = []
    listed = JobApi.list_page

    def noted(*arguments: Any, **more: Any) -> JobPage:
        read.append(more["page_size"])
        return listed(*arguments, **more)

    jobline.client.push_many("mail", ["x"] * 3_000)
    monkeypatch.setattr(JobApi, "list_page", noted)
    jobline.assert_pushed(queue="mail")
    with pytest.raises(AssertionError, match="more than 2 jobs"):
        jobline.assert_pushed(queue="mail", times=2)
    assert read == [1, 3]
