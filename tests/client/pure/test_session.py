"""The worker's side of the stream: jobs, settles, revokes, reports."""

from __future__ import annotations

import pytest

from jobline._enums import ReleaseReason, RevokeReason
from jobline._job_log import LogLevel
from jobline._requests import MESSAGE_BYTES_MAX, fail_item
from jobline._stream.frames import LostLease, release_of_lease
from tests.client.pure.session_frames import connected, jobs, new_session, opened, revoke, run, said


@pytest.fixture
def session():
    """A session whose first stream is open."""
    session = new_session()
    connected(session)
    return session


# ---------------------------------------------------------------------- opening


def test_the_first_frame_opens_and_asks_for_jobs():
    """Nothing else is sent before the server has answered."""
    session = new_session(window=8)
    session.connect(0.0)
    (frame,) = session.frames_to_send(0.0)
    assert frame.open.worker.id == "w"
    assert frame.open.accepts_runs
    assert frame.open.max_message_bytes == MESSAGE_BYTES_MAX
    assert frame.open.session == ""
    assert frame.window.max_in_flight == 8
    assert session.frames_to_send(99.0) == []
    session.handle_frame(0.0, opened())
    assert session.frames_to_send(0.0) == []


def test_a_later_stream_takes_up_the_session(session):
    """The leases belong to the session, not to the connection."""
    session.disconnect()
    session.connect(5.0)
    (frame,) = session.frames_to_send(5.0)
    assert frame.open.session == "s1"


# ---------------------------------------------------------------------- jobs and settles


def test_jobs_and_runs_are_held_until_they_are_settled(session):
    """One by one or as a run, a lease is a lease."""
    received = session.handle_frame(0.0, jobs((1, 5)))
    assert [(job.id, job.delivery) for job in received.jobs] == [(1, 5)]
    received = session.handle_frame(0.0, run(10, 7, 3))
    assert [(job.id, job.delivery) for job in received.jobs] == [(10, 7), (11, 7), (12, 7)]
    assert session.held == {1: 5, 10: 7, 11: 7, 12: 7}
    assert session.ack(11, 7)
    assert not session.ack(11, 7)
    assert session.settle(fail_item((10, 7), "no"))
    assert session.settle(release_of_lease(12, 7, ReleaseReason.SNOOZE, 3.5))
    settle = said(session).settles[0]
    assert (list(settle.ack_ids), settle.fails[0].id) == ([11], 10)
    assert settle.releases[0].delay.ToMilliseconds() == 3500
    assert session.held == {1: 5}


def test_what_is_not_held_is_not_settled(session):
    """An older delivery, or a lease that was lost, says nothing to the server."""
    session.handle_frame(0.0, jobs((1, 5)))
    assert not session.ack(1, 4)
    assert not session.settle(fail_item((2, 5), "no"))
    assert not session.report(1, 4, progress=1.0)
    assert not said(session).ListFields()


def test_a_newer_lease_of_the_same_job_ends_the_older(session):
    """Its handler is told, and the new one runs."""
    session.handle_frame(0.0, jobs((1, 5)))
    received = session.handle_frame(0.0, jobs((1, 6)))
    assert received.lost == [LostLease(1, 5, RevokeReason.LEASE_LOST)]
    assert [job.delivery for job in received.jobs] == [6]
    assert session.held == {1: 6}


def test_a_lease_that_is_delivered_twice_runs_once(session):
    """However it comes, (id, delivery) is one hand-out."""
    session.handle_frame(0.0, jobs((1, 5)))
    received = session.handle_frame(0.0, jobs((1, 5), (2, 1)))
    assert [job.id for job in received.jobs] == [2]


# ---------------------------------------------------------------------- revokes


def test_a_cancelled_job_is_still_held(session):
    """Its worker stops, and then settles it."""
    session.handle_frame(0.0, jobs((1, 5)))
    received = session.handle_frame(0.0, revoke(1, 5, RevokeReason.CANCELLED))
    assert received.lost == [LostLease(1, 5, RevokeReason.CANCELLED)]
    assert session.ack(1, 5)


@pytest.mark.parametrize("reason", [RevokeReason.LEASE_LOST, RevokeReason.QUEUE_DELETED, 77])
def test_a_lost_lease_is_gone(session, reason):
    """There is nothing left to settle, whatever the reason is called."""
    session.handle_frame(0.0, jobs((1, 5)))
    received = session.handle_frame(0.0, revoke(1, 5, reason))
    assert [(lost.id, lost.delivery) for lost in received.lost] == [(1, 5)]
    assert not session.ack(1, 5)


@pytest.mark.parametrize("reason", [RevokeReason.CANCELLED, RevokeReason.LEASE_LOST])
def test_a_revoke_beside_its_own_delivery_counts(session, reason):
    """The lease was handed out and taken back before the frame was sent."""
    frame = jobs((1, 5))
    frame.MergeFrom(revoke(1, 5, reason))
    received = session.handle_frame(0.0, frame)
    assert received.lost == [LostLease(1, 5, reason)]
    assert (1 in session.held) == (reason is RevokeReason.CANCELLED)


def test_a_revoke_of_the_older_lease_spares_the_newer(session):
    """Both may come in one frame."""
    session.handle_frame(0.0, jobs((1, 5)))
    frame = jobs((1, 6))
    frame.MergeFrom(revoke(1, 5, RevokeReason.LEASE_LOST))
    received = session.handle_frame(0.0, frame)
    assert received.lost == [LostLease(1, 5, RevokeReason.LEASE_LOST)]
    assert session.held == {1: 6}


def test_a_revoke_that_comes_too_late_is_nothing(session):
    """The job was settled meanwhile."""
    session.handle_frame(0.0, jobs((1, 5)))
    session.ack(1, 5)
    assert session.handle_frame(0.0, revoke(1, 5, RevokeReason.LEASE_LOST)).lost == []


# ---------------------------------------------------------------------- reports


def test_reports_are_said_once_and_before_the_settle(session):
    """What was said faster than it could be sent is said once; within a frame settles would come
    first.
    """
    session.handle_frame(0.0, jobs((1, 5), (2, 5)))
    session.report(1, 5, progress=10.0, message="ten")
    session.report(1, 5, progress=20.0, checkpoint=b"half")
    session.settle(fail_item((1, 5), "no"))
    reports, settles = session.frames_to_send(0.0)
    assert len(reports.extends) == 1
    item = reports.extends[0]
    assert (item.progress, item.message, item.checkpoint) == (20.0, "ten", b"half")
    assert not reports.settles
    assert settles.settles[0].fails[0].id == 1


def test_lines_of_a_log_go_out_together_and_before_the_settle(session):
    """Also those of a job that is done: its log is read later."""
    session.handle_frame(0.0, jobs((1, 5), (2, 5)))
    assert session.log(1, 5, 1_000, LogLevel.INFO, "one")
    assert session.log(1, 5, 2_000, LogLevel.ERROR, "two")
    assert session.log(2, 5, 3_000, LogLevel.DEBUG, "other")
    session.ack(1, 5)
    assert not session.log(1, 5, 4_000, LogLevel.INFO, "after its end")
    logs, settles = session.frames_to_send(0.0)
    first, second = logs.logs
    assert (first.id, first.delivery, list(first.lines)) == (1, 5, ["one", "two"])
    assert (list(first.levels), list(first.at_ms)) == ([2, 4], [1_000, 2_000])
    assert (second.id, list(second.lines)) == (2, ["other"])
    assert settles.settles[0].ack_ids == [1]


def test_lines_of_a_lost_lease_are_dropped(session):
    """The server would refuse them."""
    session.handle_frame(0.0, jobs((1, 5)))
    session.log(1, 5, 1_000, LogLevel.INFO, "one")
    session.handle_frame(0.0, revoke(1, 5, RevokeReason.LEASE_LOST))
    assert not said(session).logs


def test_reports_of_a_job_that_is_done_are_not_sent(session):
    """Nobody needs the progress of a completed job."""
    session.handle_frame(0.0, jobs((1, 5)))
    session.report(1, 5, progress=10.0)
    session.ack(1, 5)
    assert not said(session).extends


def test_the_newest_checkpoint_is_said_again_on_a_new_stream(session):
    """Nothing confirms a report, and a checkpoint may have been lost with the connection."""
    session.handle_frame(0.0, jobs((1, 5)))
    session.report(1, 5, progress=10.0, checkpoint=b"one")
    said(session)
    session.disconnect()
    session.connect(1.0)
    session.frames_to_send(1.0)
    session.handle_frame(1.0, opened((1, 5)))
    (item,) = said(session, 1.0).extends
    assert (item.checkpoint, item.HasField("progress")) == (b"one", False)
