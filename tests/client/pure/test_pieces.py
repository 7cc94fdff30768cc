"""Pieces of results that wait to be sent, and those that a caller gets."""

from __future__ import annotations

import pytest

from jobline import CodecError, InvalidArgument
from jobline._partial import Partial
from jobline._stream import pieces as module
from jobline._stream.pieces import Pieces
from jobline._stream.reports import Reports
from jobline._wait.waiting import Waiting
from jobline.testing import make_context
from jobline.v1 import job_service_pb2 as pb


def test_pieces_go_out_in_order_and_before_other_reports():
    """None replaces another; of two leases the first comes first."""
    reports = Reports()
    reports.add(1, 5, partial=b"a")
    reports.add(1, 5, progress=50)
    reports.add(2, 5, partial=b"x")
    reports.add(1, 5, partial=b"b")
    reports.forget(1)  # the job is done: its pieces go out all the same
    sent = [(item.id, item.partial, item.progress) for item in reports.take()]
    assert sent == [(1, b"a", 0), (1, b"b", 0), (2, b"x", 0)]
    assert not reports


def test_pieces_of_a_lost_lease_are_dropped():
    reports = Reports()
    reports.add(1, 5, partial=b"a")
    reports.add(2, 5, partial=b"b")
    reports.lose(1)
    assert [item.id for item in reports.take()] == [2]
    reports.add(2, 5, partial=b"c")
    reports.forget_waiting()
    assert not reports


def test_a_frame_has_no_more_than_it_may_carry(monkeypatch):
    pieces = Pieces()
    for _ in range(5):
        pieces.add(1, 5, b"x" * 10)
    monkeypatch.setattr(module, "FRAME_BYTES_MAX", 25)
    assert [len(pieces.take()) for _ in range(3)] == [3, 2, 0]
    for _ in range(5):
        pieces.add(1, 5, b"x")
    monkeypatch.setattr(module, "FRAME_PIECES_MAX", 4)
    assert [len(pieces.take()) for _ in range(3)] == [4, 1, 0]


def test_a_job_that_is_faster_than_its_stream_keeps_its_last_pieces():
    """As many as the server would keep; a worker that is cut off must not grow."""
    pieces = Pieces()
    for number in range(40):
        pieces.add(1, 5, bytes([number]) * (64 << 10))
    [*items] = [*pieces.take(), *pieces.take()]
    assert [item.partial[0] for item in items] == list(range(25, 40))


def test_handler_sends_bytes_or_what_has_json():
    context = make_context()
    context.partial(b"raw")
    context.partial({"token": "a"})
    assert context.partials == [b"raw", b'{"token":"a"}']
    for wrong in (b"", b"x" * 65_537):
        with pytest.raises(InvalidArgument, match="1 byte … 64 KiB"):
            context.partial(wrong)
    with pytest.raises(CodecError):
        context.partial(object())


def test_piece_has_the_value_that_was_sent():
    assert Partial(1, 2, 3, b'{"a":1}').value() == {"a": 1}
    assert Partial(1, 2, 3, b"\xff").value() == b"\xff"
    assert Partial(1, 2, 3, b"4").value(int) == 4
    with pytest.raises(CodecError):
        Partial(1, 2, 3, b"4").value(str)


def response(delivery: int, number: int) -> pb.WaitResponse:
    return pb.WaitResponse(id=1, partial=b"x", partial_delivery=delivery, partial_number=number)


def test_piece_that_comes_again_after_a_broken_connection_is_given_once():
    """The server begins with the oldest it has; another delivery begins anew."""
    waiting = Waiting(0, [1], 60, partials=True)
    request = waiting.request(1)
    assert request is not None
    assert request.partials
    order = [(7, 5), (7, 6), (7, 5), (7, 6), (7, 7), (8, 1), (8, 1), (8, 2)]
    given = [one for one in order if waiting.take_piece(response(*one)) is not None]
    assert given == [(7, 5), (7, 6), (7, 7), (8, 1), (8, 2)]
    assert waiting.take_piece(pb.WaitResponse(id=1, not_found=True)) is None
    assert waiting.request(2) is None
