"""Settles: packed, numbered, kept until they are confirmed, and sent again when a stream broke."""

from __future__ import annotations

from jobline import SettleOutcome
from jobline._enums import ReleaseReason
from jobline._requests import fail_item
from jobline._stream import settles
from jobline._stream.frames import release_of_lease
from jobline._stream.settles import SettleKind, SettleReport, Settles
from jobline.v1 import job_service_pb2 as pb


def confirm(seq, *exceptions):
    return pb.StreamConfirm(
        seq=seq, exceptions=[pb.SettleException(index=i, outcome=o) for i, o in exceptions]
    )


def taken(box):
    settle = box.take()
    assert settle is not None
    return settle


def release(id_, delivery):
    return release_of_lease(id_, delivery, ReleaseReason.INTERRUPTED)


def test_acks_without_result_are_columns_and_all_else_is_rows():
    """What is plain travels packed."""
    box = Settles()
    box.ack(1, 10)
    box.ack(2, 20, b"result")
    box.ack(3, 30, b"")
    box.add(fail_item((4, 40), "no"))
    box.add(release(5, 50))
    settle = taken(box)
    assert (list(settle.ack_ids), list(settle.ack_deliveries)) == ([1, 3], [10, 30])
    assert [(row.id, row.result) for row in settle.acks] == [(2, b"result")]
    assert [row.id for row in settle.fails] == [4]
    assert [row.id for row in settle.releases] == [5]
    assert box.take() is None


def test_a_confirm_forgets_its_settle():
    """What is on disk is not sent again."""
    box = Settles()
    box.ack(1, 10)
    settle = taken(box)
    assert box.resend() == [settle]
    assert box.handle_confirm(confirm(settle.seq)) == []
    assert not box.has_unconfirmed
    assert box.handle_confirm(confirm(settle.seq, (0, 4))) == []


def test_exceptions_name_items_in_the_order_of_the_protocol():
    """Packed ids first, then rows with results, then fails, then releases; a strange index is
    nobody's.
    """
    box = Settles()
    box.add(release(5, 50))
    box.add(fail_item((4, 40), None))
    box.ack(2, 20, b"result")
    box.ack(1, 10)
    box.take()
    reports = box.handle_confirm(confirm(1, (3, 4), (2, 2), (1, 3), (0, 99), (4, 4), (-1, 4)))
    assert reports == [
        SettleReport(5, 50, SettleKind.RELEASE, SettleOutcome.LEASE_LOST),
        SettleReport(4, 40, SettleKind.FAIL, SettleOutcome.ALREADY_DONE),
        SettleReport(2, 20, SettleKind.ACK, SettleOutcome.CANCELLED),
        SettleReport(1, 10, SettleKind.ACK, SettleOutcome.UNSPECIFIED),
    ]


def test_a_confirm_that_repeats_itself_reports_each_job_once():
    """Whatever the server says, counts stay right and a line of the log comes once."""
    box = Settles()
    box.ack(1, 10)
    box.add(fail_item((2, 20), "no"))
    box.take()
    answer = confirm(1, *[(0, 4)] * 1_000)
    answer.dead.extend([1] * 1_000)
    lost, dead = box.handle_confirm(answer)
    assert (lost.id, lost.outcome, lost.is_dead) == (1, SettleOutcome.LEASE_LOST, False)
    assert (dead.id, dead.is_dead) == (2, True)


def test_many_unconfirmed_settles_make_the_next_ones_gather(monkeypatch):
    """A fast worker sends few large settles instead of many small ones."""
    monkeypatch.setattr(settles, "UNCONFIRMED_MAX", 2)
    box = Settles()
    for id_ in range(1, 6):
        box.ack(id_, 1)
        box.take()
    assert len(box.resend()) == 2
    box.handle_confirm(confirm(1))
    assert list(taken(box).ack_ids) == [3, 4, 5]


def test_a_settle_holds_no_more_than_the_protocol_allows(monkeypatch):
    """Items and bytes are bounded; a single row always fits."""
    monkeypatch.setattr(settles, "ITEMS_MAX", 3)
    monkeypatch.setattr(settles, "ITEM_BYTES_MAX", 50)
    box = Settles()
    for id_ in range(1, 5):
        box.ack(id_, 1)
    box.ack(5, 1, b"x" * 99)
    box.ack(6, 1, b"x" * 99)
    sizes = []
    while (settle := box.take()) is not None:
        sizes.append((len(settle.ack_ids), len(settle.acks)))
    assert sizes == [(3, 0), (1, 1), (0, 1)]


def test_of_two_leases_of_one_job_only_the_newer_is_settled():
    """Lost, leased again and done again while nothing could be sent: the server refuses an id
    twice.
    """
    box = Settles()
    box.ack(1, 10)
    box.ack(2, 10)
    box.ack(1, 11, b"result")
    box.add(fail_item((2, 9), "no"))
    box.add(release(3, 2))
    box.add(release(3, 1))
    settle = taken(box)
    assert list(settle.ack_ids) == [2]
    assert [(row.id, row.delivery) for row in settle.acks] == [(1, 11)]
    assert [row.id for row in settle.fails] == []
    assert [(row.id, row.delivery) for row in settle.releases] == [(3, 2)]


def test_unconfirmed_leases_are_those_sent_and_those_waiting():
    """A new stream must know them apart from jobs that nobody here has seen."""
    box = Settles()
    box.ack(1, 10)
    box.add(fail_item((2, 20), None))
    box.take()
    box.ack(3, 30)
    box.ack(4, 40, b"result")
    assert box.unconfirmed_leases() == {1: 10, 2: 20, 3: 30, 4: 40}


def test_a_fence_is_passed_when_the_server_confirms_what_was_sent_with_it():
    """Also if nothing is to be settled, and again on the next stream."""
    box, passed = Settles(), []
    box.fence(lambda: passed.append("a"))
    settle = taken(box)
    assert not settle.ack_ids
    box.fence(lambda: passed.append("b"))
    assert box.resend() == [settle]
    assert passed == []
    box.handle_confirm(confirm(settle.seq))
    box.handle_confirm(confirm(settle.seq))
    assert passed == ["a"]
    box.handle_confirm(confirm(taken(box).seq))
    assert passed == ["a", "b"]
    assert not box.has_unconfirmed
