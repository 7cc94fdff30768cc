"""Waiting for jobs to end: what is asked, and asked again after a broken connection."""

from __future__ import annotations

import pytest

from jobline import Internal, PermissionDenied
from jobline._requests import Watching
from jobline._wait.waiting import Waiting
from jobline.v1 import event_pb2, job_pb2
from jobline.v1 import job_service_pb2 as pb


def ended(id_: int) -> pb.WaitResponse:
    return pb.WaitResponse(id=id_, state=job_pb2.JOB_STATE_COMPLETED)


def test_what_was_told_is_not_asked_for_again():
    """And the time goes on from the first request."""
    waiting = Waiting(100.0, [1, 2, 3], 10)
    waiting.request(100.0)
    waiting.take(ended(2))
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
    waiting.take(ended(1))
    assert waiting.request(101.0) is None


def test_a_piece_that_may_not_be_seen_is_refused():
    waiting = Waiting(0.0, [7], 10, partials=True)
    piece = pb.WaitResponse(id=7, partial_number=1, partial_delivery=1, result_hidden=True)
    with pytest.raises(PermissionDenied, match="read_payload"):
        waiting.take_piece(piece)


def test_pieces_that_come_again_on_a_new_connection_are_not_given_twice():
    """The server gives what it keeps; another delivery begins anew, with any number."""

    def pieces(delivery: int, *numbers: int) -> pb.WatchResponse:
        kind = event_pb2.EVENT_KIND_PARTIAL
        events = [
            event_pb2.Event(kind=kind, delivery=delivery, partial_number=number)
            for number in numbers
        ]
        return pb.WatchResponse(events=events, resume_token="t")

    watching = Watching(queues=(), job_id=7, kinds=["partial"], resume_token="")
    seen = [
        event.partial_number
        for response in (pieces(1, 5, 6), pieces(1, 5, 6, 7), pieces(2, 5), pieces(2, 5))
        for event, _ in watching.take(response)
    ]
    assert seen == [5, 6, 7, 5]
    other = pb.WatchResponse(events=[event_pb2.Event(kind=event_pb2.EVENT_KIND_LEASED)] * 2)
    assert len(list(watching.take(other))) == 2


@pytest.mark.parametrize(
    "answer",
    [
        ended(2),
        pb.WaitResponse(id=2, not_found=True),
        pb.WaitResponse(id=2, partial=b"x"),
        pb.WaitResponse(id=1),
        pb.WaitResponse(id=1, state=job_pb2.JOB_STATE_ACTIVE),
        pb.WaitResponse(id=1, state=job_pb2.JOB_STATE_STALE),
    ],
    ids=["another", "another-gone", "another-piece", "no-state", "active", "stale"],
)
def test_an_answer_that_is_no_end_of_a_job_that_was_asked_for_is_refused(answer):
    """It would be told as the end of that job, or end the wait for another."""
    waiting = Waiting(100.0, [1], 10, partials=True)
    with pytest.raises(Internal, match=r"the answer to a wait"):
        waiting.take_piece(answer)
    assert list(waiting.remaining) == [1]
    if not answer.partial:
        with pytest.raises(Internal, match=r"the answer to a wait"):
            waiting.take(answer)
