"""Waiting for jobs to end: what is asked, and asked again after a broken connection."""

from __future__ import annotations

from jobline._requests import Waiting
from jobline.v1 import job_service_pb2 as pb


def test_what_was_told_is_not_asked_for_again():
    """And the time goes on from the first request."""
    waiting = Waiting(100.0, [1, 2, 3], 10)
    waiting.request(100.0)
    waiting.take(pb.WaitResponse(id=2))
    again = waiting.request(104.0)
    assert again is not None
    assert (list(again.ids), again.timeout.seconds) == ([1, 3], 6)


def test_who_woke_up_late_asks_once_more():
    """Only an answer, or the lack of one, says how it ended; that time is over says nothing."""
    waiting = Waiting(100.0, [1], 10)
    waiting.request(100.0)
    late = waiting.request(111.0)
    assert late is not None
    assert (list(late.ids), late.timeout.ToMilliseconds()) == ([1], 0)


def test_nothing_is_asked_when_everything_was_told():
    """An answer may be complete although its connection broke."""
    waiting = Waiting(100.0, [1], 10)
    waiting.request(100.0)
    waiting.take(pb.WaitResponse(id=1))
    assert waiting.request(101.0) is None
