"""The worker's side over many streams: what outlives a connection, when a server is silent, how it
ends.
"""

from __future__ import annotations

import math

import pytest

from jobline._enums import RevokeReason
from jobline._stream.frames import Goaway, LostLease, interrupted_release
from jobline._stream.heartbeat import HEARTBEAT_SHARE, OPEN_TIMEOUT, SILENT_INTERVALS
from jobline.v1 import job_service_pb2 as pb
from tests.client.pure.session_frames import (
    INTERVAL,
    confirm,
    connected,
    jobs,
    new_session,
    opened,
    run,
    said,
)


@pytest.fixture
def session():
    """A session whose first stream is open."""
    session = new_session()
    connected(session)
    return session


# ---------------------------------------------------------------------- broken connections


def test_unconfirmed_settles_are_sent_again_with_their_numbers(session):
    """Their outcome is unknown; repeating an accepted one says ALREADY_DONE."""
    session.handle_frame(0.0, jobs((1, 5), (2, 5)))
    session.ack(1, 5)
    first = said(session).settles[0]
    session.disconnect()
    session.ack(2, 5)
    session.connect(1.0)
    session.frames_to_send(1.0)
    received = session.handle_frame(1.0, opened((1, 5), (2, 5)))
    assert received.lost == []
    again, second = said(session, 1.0).settles
    assert again == first
    assert (second.seq, list(second.ack_ids)) == (2, [2])
    session.handle_frame(1.0, confirm(1))
    session.handle_frame(1.0, confirm(2))
    assert session.is_confirmed


def test_a_session_that_another_stream_took_is_not_asked_for_again(session):
    """Trial A5: its leases are lost, and the worker goes on under a new one."""
    session.handle_frame(0.0, jobs((1, 5)))
    session.handle_taken()
    session.disconnect()
    session.connect(1.0)
    (first,) = session.frames_to_send(1.0)
    assert not first.open.session
    received = session.handle_frame(1.0, opened())
    assert received.lost == [LostLease(1, 5, RevokeReason.LEASE_LOST)]


def test_leases_that_the_server_does_not_hold_any_more_are_dropped(session):
    """Its grace ended before the worker came back."""
    session.handle_frame(0.0, jobs((1, 5), (2, 5)))
    session.disconnect()
    received = connected(session, (2, 5), now=30.0)
    assert received.resumed
    assert received.lost == [LostLease(1, 5, RevokeReason.LEASE_LOST)]
    assert session.held == {2: 5}


def test_a_server_that_does_not_know_the_session_holds_nothing(session):
    """A new session begins, and all handlers are told to stop."""
    session.handle_frame(0.0, jobs((1, 5)))
    session.disconnect()
    received = connected(session, now=30.0)
    assert not received.resumed
    assert [lost.id for lost in received.lost] == [1]


def test_leases_that_never_arrived_are_given_back(session):
    """They were handed out in a frame that was lost, and every frame would keep them leased for
    ever.
    """
    session.handle_frame(0.0, jobs((1, 5)))
    session.disconnect()
    session.connect(1.0)
    session.frames_to_send(1.0)
    session.handle_frame(1.0, opened((1, 5), (9, 3)))
    (item,) = said(session, 1.0).settles[0].releases
    assert (item.id, item.delivery, item.why) == (9, 3, pb.RELEASE_REASON_INTERRUPTED)


def test_what_was_refused_is_not_said_again(session):
    """A settle the server cannot accept would break every stream; its lease is given back
    instead.
    """
    session.handle_frame(0.0, jobs((1, 5)))
    session.ack(1, 5, b"too large")
    said(session)
    session.handle_refusal()
    session.disconnect()
    session.connect(1.0)
    session.frames_to_send(1.0)
    session.handle_frame(1.0, opened((1, 5)))
    settle = said(session, 1.0).settles[0]
    assert not settle.acks
    assert [item.id for item in settle.releases] == [1]


# ---------------------------------------------------------------------- window, heartbeat, silence


def test_a_new_window_is_said_once_and_again_on_every_stream(session):
    """It is an absolute number: saying it again changes nothing, not saying it loses it."""
    session.set_window(20, 1 << 20)
    assert said(session).window.max_in_flight == 20
    assert not said(session).HasField("window")
    session.connect(1.0)
    (frame,) = session.frames_to_send(1.0)
    assert frame.window.max_in_flight == 20


def test_a_quiet_worker_still_says_that_it_lives(session):
    """An empty frame at least every interval, counted from the last one."""
    due = HEARTBEAT_SHARE * INTERVAL
    assert session.next_deadline() == due
    assert session.frames_to_send(due - 0.1) == []
    assert session.frames_to_send(due) == [pb.StreamRequest()]
    assert session.next_deadline() == 2 * due


def test_a_worker_speaks_more_often_for_a_short_lease(session):
    """Three times within the shortest one, until all that it held together is settled."""
    session.handle_frame(0.0, jobs((1, 1), lease_ms=60_000))
    assert session.next_deadline() == HEARTBEAT_SHARE * INTERVAL
    session.handle_frame(0.0, jobs((2, 2), lease_ms=1_500))
    assert session.next_deadline() == 0.5
    assert session.frames_to_send(0.49) == []
    assert session.frames_to_send(0.5) == [pb.StreamRequest()]
    session.ack(2, 2)
    assert said(session, 0.6).settles
    assert session.next_deadline() == pytest.approx(1.1)
    session.ack(1, 1)
    assert said(session, 0.7).settles
    assert session.next_deadline() == 0.7 + HEARTBEAT_SHARE * INTERVAL
    session.handle_frame(1.0, jobs((3, 3), lease_ms=60_000))
    assert session.next_deadline() == 0.7 + HEARTBEAT_SHARE * INTERVAL


def test_a_worker_speaks_more_often_for_a_run_with_a_short_lease(session):
    """The jobs of a run share their lease."""
    session.handle_frame(0.0, run(1, 1, 5, lease_ms=3_000))
    assert session.next_deadline() == 1.0


def test_three_silent_intervals_are_the_end(session):
    """The server may be gone without a word."""
    end = SILENT_INTERVALS * INTERVAL
    for now in range(0, int(end), 5):
        assert not session.is_silent(now)
    assert session.next_silence_check() == end
    assert session.is_silent(end)
    session.disconnect()
    assert not session.is_silent(end)
    assert session.next_silence_check() == session.next_deadline() == math.inf


def test_any_frame_of_the_server_breaks_the_silence(session):
    """An empty one too."""
    session.is_silent(20.0)
    session.handle_frame(25.0, pb.StreamResponse())
    for now in (25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 54.9):
        assert not session.is_silent(now)
    assert session.is_silent(55.0)


def test_a_program_that_did_not_run_does_not_blame_the_server(session):
    """After a stop of its own the server's frames may still be waiting to be read."""
    assert not session.is_silent(5.0)
    assert not session.is_silent(1000.0)
    assert not session.is_silent(1005.0)


def test_a_server_that_never_answers_open_is_silent():
    """A connection that is accepted and then ignored ends too."""
    session = new_session()
    session.connect(100.0)
    session.frames_to_send(100.0)
    assert not session.is_silent(103.0)
    assert not session.is_silent(107.0)
    assert session.is_silent(100.0 + OPEN_TIMEOUT)


# ---------------------------------------------------------------------- goaway and drain


def test_goaway_says_when_and_for_how_long(session):
    """Wall time for the end, seconds for the pause."""
    frame = pb.StreamResponse()
    frame.goaway.reason = "rotation"
    frame.goaway.close_time.FromMilliseconds(1_500)
    frame.goaway.retry_delay.FromMilliseconds(250)
    goaway = session.handle_frame(0.0, frame).goaway
    assert (goaway.reason, goaway.close_at, goaway.retry_delay) == ("rotation", 1.5, 0.25)


@pytest.mark.parametrize(
    ("ahead", "stays"), [(0.0, 60.0), (3_600.0, 30.0), (-3_600.0, 3_600.0), (40.0, 30.0)]
)
def test_a_clock_that_is_wrong_ends_no_stream_at_once(ahead, stays):
    """The server ends the stream by its own clock; settles are on their way."""
    assert Goaway("rotation", 1_060.0, 5.0).patience(1_000.0 + ahead) == stays


def test_a_drain_ends_when_all_is_said_and_confirmed(session):
    """Drain, its confirm, settle what is held, half-close, last confirm."""
    session.handle_frame(0.0, jobs((1, 5)))
    session.drain()
    frames = session.frames_to_send(0.0)
    assert [frame.drain for frame in frames] == [True, False]
    assert [settle.seq for settle in frames[1].settles] == [1]
    session.handle_frame(0.0, confirm(1))
    assert not session.may_half_close
    session.ack(1, 5)
    assert not session.may_half_close
    said(session)
    assert session.may_half_close
    assert not session.is_confirmed
    session.handle_frame(0.0, confirm(2))
    assert session.is_confirmed


def test_a_job_that_was_on_its_way_at_the_drain_can_be_given_back(session):
    """The stream is not half-closed before the server has said that it sends no more."""
    session.drain()
    session.frames_to_send(0.0)
    assert not session.may_half_close
    session.handle_frame(0.0, jobs((1, 5)))
    session.handle_frame(0.0, confirm(1))
    assert not session.may_half_close
    session.settle(interrupted_release(1, 5))
    (release,) = said(session).settles[0].releases
    assert release.id == 1
    assert session.may_half_close


def test_a_confirm_of_the_stream_before_is_none_of_this_drain(session):
    session.drain()
    session.frames_to_send(0.0)
    session.disconnect()
    session.connect(1.0)
    session.frames_to_send(1.0)
    session.handle_frame(1.0, opened())
    session.handle_frame(1.0, confirm(1))  # of the settle that was sent again, before the drain
    assert not session.may_half_close
    session.frames_to_send(1.0)
    session.handle_frame(1.0, confirm(2))
    assert session.may_half_close


def test_a_drain_survives_a_broken_connection(session):
    """The next stream says it again."""
    session.drain()
    session.frames_to_send(0.0)
    session.disconnect()
    assert not connected(session, now=1.0).jobs
    session.connect(2.0)
    session.frames_to_send(2.0)
    session.handle_frame(2.0, opened())
    assert any(frame.drain for frame in session.frames_to_send(2.0))
