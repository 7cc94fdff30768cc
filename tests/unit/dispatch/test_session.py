"""The worker stream as a protocol: frames in, frames out, time by hand."""

from __future__ import annotations

import pytest

from jobline_server.dispatch.frames import Goaway, Handler, Open, Window, Worker
from jobline_server.dispatch.session import SILENT_INTERVALS, Phase, Session
from jobline_server.engine.commands import Leased, LeasedRun, RefusalKind, Refused
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, Now, RevokeReason, SettleOutcome

HEARTBEAT_MS = 5_000


def at(mono_ms: int) -> Now:
    return Now(wall_ms=1_790_000_000_000 + mono_ms, mono_ms=mono_ms)


def a_session(*handlers: Handler) -> Session:
    opened = Open(worker=Worker(id="w"), queues=(("mail", 1),), handlers=handlers)
    return Session(opened, "s-1", at(0), heartbeat_ms=HEARTBEAT_MS)


def test_has_no_room_before_the_first_window() -> None:
    """The server never has more unfinished on a stream than the worker asked for."""
    assert a_session().room()[0] == 0


def test_room_is_window_minus_what_is_unfinished() -> None:
    """Credit is counted once, in `in_flight`, which the engine updates."""
    session = a_session()
    session.handle_window(Window(jobs=10, payload_bytes=1_000))
    session.in_flight.jobs, session.in_flight.payload_bytes = 4, 250
    assert session.room() == (6, 750)


def test_a_smaller_window_never_makes_room_negative() -> None:
    """A window may shrink below what is unfinished; nothing is taken back."""
    session = a_session()
    session.in_flight.jobs = 4
    session.handle_window(Window(jobs=1))
    assert session.room()[0] == 0


def test_a_window_of_zero_pauses() -> None:
    """0 pauses a worker that has nothing unfinished."""
    session = a_session()
    session.handle_window(Window(jobs=10))
    session.handle_window(Window(jobs=0))
    assert session.room()[0] == 0


@pytest.mark.parametrize("end", ["drain", "goaway", "half-close"])
def test_a_stream_that_ends_gets_no_more_jobs(end: str) -> None:
    """Drain, goaway and half-close all stop deliveries."""
    session = a_session()
    session.handle_window(Window(jobs=10))
    {
        "drain": session.handle_drain,
        "goaway": lambda: session.goaway(Goaway("moving", 0, 0), at(0)),
        "half-close": session.handle_half_close,
    }[end]()
    assert session.room() == (0, 0)
    assert session.phase is Phase.DRAINING


def test_a_worker_that_lost_a_lease_gets_jobs_when_it_is_heard_again() -> None:
    """Its connection may be dead unnoticed, and its next jobs would stall as well."""
    session = a_session()
    session.handle_window(Window(jobs=10))
    session.handle_lost_lease(at(1_000), 1_000)
    assert session.room() == (0, 0)
    session.handle_any(at(1_001))
    assert session.room()[0] == 10


def test_a_worker_that_was_heard_since_it_lost_a_lease_gets_jobs() -> None:
    """It is notified of a lost lease after a commit, which may take a while."""
    session = a_session()
    session.handle_window(Window(jobs=10))
    session.handle_any(at(1))
    session.handle_lost_lease(at(1_000), 1_000)
    assert session.room()[0] == 10


def test_stream_that_has_ended_stays_ended() -> None:
    """Whatever still comes in on it: its leases may be with the worker's next stream by now."""
    session = a_session()
    session.phase = Phase.ENDED
    session.handle_drain()
    session.handle_half_close()
    session.goaway(Goaway("moving", 0, 0), at(0))
    assert session.phase is Phase.ENDED


def test_gathers_everything_into_one_frame() -> None:
    """Everything since the last frame is sent together, and only once."""
    session = a_session()
    session.opened([], [])
    session.deliver(Leased())
    session.handle_settle()
    session.confirm(7, [(0, SettleOutcome.LEASE_LOST)])
    session.revoke(1, 2, RevokeReason.CANCELLED)
    frame = session.frame_to_send(at(1))
    assert frame is not None
    assert frame.opened is not None
    assert frame.confirms == [(7, [(0, SettleOutcome.LEASE_LOST)], ())]
    assert frame.revokes == [(1, 2, RevokeReason.CANCELLED)]
    assert len(frame.leased) == 1
    assert session.frame_to_send(at(2)) is None


def test_sends_an_empty_frame_when_nothing_was_sent_for_an_interval() -> None:
    """Proxies close streams on which no data flows."""
    session = a_session()
    assert session.frame_to_send(at(HEARTBEAT_MS - 1)) is None
    assert session.frame_to_send(at(HEARTBEAT_MS)) is not None
    assert session.next_deadline() == 2 * HEARTBEAT_MS


def test_a_worker_is_silent_after_three_intervals_without_a_frame() -> None:
    """Any frame counts, an empty one too."""
    session = a_session()
    session.handle_any(at(1_000))
    silent_at = 1_000 + SILENT_INTERVALS * HEARTBEAT_MS
    assert not session.is_silent(at(silent_at - 1))
    assert session.is_silent(at(silent_at))


def test_a_second_open_is_a_protocol_mistake() -> None:
    """The refusal names the field."""
    with pytest.raises(Refused) as refused:
        a_session().handle_open()
    assert refused.value.kind is RefusalKind.PROTOCOL_MISTAKE
    assert refused.value.field == "open"


def test_a_frame_after_the_half_close_is_a_protocol_mistake() -> None:
    """The worker said that it sends no more."""
    session = a_session()
    session.handle_half_close()
    with pytest.raises(Refused):
        session.handle_any(at(1))


def test_is_over_only_after_the_last_confirm_was_sent() -> None:
    """A drained worker learns what became of its last settle."""
    session = a_session()
    session.handle_settle()
    session.handle_half_close()
    assert not session.is_over()
    session.confirm(1, [])
    assert not session.is_over()
    session.frame_to_send(at(1))
    assert session.is_over()


def test_number_zero_asks_for_no_confirm() -> None:
    """The settle is done all the same."""
    session = a_session()
    session.handle_settle()
    session.confirm(0, [])
    session.handle_half_close()
    assert session.is_over()


def test_names_are_those_of_its_handlers_by_queue() -> None:
    """A stream without handlers takes any name; one with handlers none in other queues."""
    session = a_session(Handler("mail", "welcome"), Handler("mail", "bye"))
    assert session.names_for("mail") == frozenset({"welcome", "bye"})
    assert session.names_for("other") == frozenset()
    assert a_session().names_for("mail") is None


def test_a_settle_that_asked_for_no_answer_gets_none() -> None:
    """Number 0: the stream may end with it."""
    session = a_session()
    session.handle_settle()
    session.handle_half_close()
    assert not session.is_over()
    session.confirm(0, [])
    assert session.unsent == 0
    assert session.is_over()


def test_a_later_end_does_not_undo_an_earlier_one() -> None:
    """The worker keeps to the first, whatever it is told after it."""
    session = a_session()
    now = at(0)
    session.goaway(Goaway("moving", 0, now.wall_ms + 1_000), now)
    session.goaway(Goaway("moving", 0, now.wall_ms + 5_000), now)
    assert session.is_time_up(at(1_000))


def a_run(*payloads: bytes) -> LeasedRun:
    return LeasedRun(1, 1, "mail", DEFAULT_OPTIONS, Payloads.of(list(payloads)), 1_000, 0)


@pytest.mark.parametrize(("payload_bytes", "room"), [(4, (0, 0)), (5, (8, 1))])
def test_what_the_worker_cannot_have_read_takes_room(payload_bytes, room) -> None:
    """It settled more than it was sent: what is in no frame yet counts, jobs and bytes."""
    session = a_session()
    session.handle_window(Window(jobs=10, payload_bytes=payload_bytes))
    session.deliver(Leased(runs=[a_run(b"ab", b"cd")]))
    assert session.room() == room
    assert session.frame_to_send(at(1)) is not None
    assert session.handle_written()
    assert session.room() == (10, payload_bytes)


def test_a_heartbeat_goes_out_although_the_clock_stands_still() -> None:
    """The worker would take the silence for a dead stream."""
    session = a_session()
    session.frame_to_send(at(0))
    assert session.frame_to_send(at(0)) is None
    session.handle_pause()
    assert session.frame_to_send(at(0)) is not None


def test_leases_that_are_in_no_frame_can_be_taken_back() -> None:
    """Those that a frame has are the worker's."""
    session = a_session()
    sent, unsent = Leased(runs=[a_run(b"a")]), Leased(runs=[a_run(b"b")])
    session.deliver(sent)
    assert session.frame_to_send(at(1)) is not None
    session.deliver(unsent)
    assert session.take_unsent() == [unsent]
    assert session.take_unsent() == []


def test_names_that_nobody_handles_go_out_with_the_newest_counts() -> None:
    """By queue and name, all in one frame."""
    session = a_session()
    session.notify_unhandled("mail", {"welcome": 1, "bye": 2})
    session.notify_unhandled("mail", {"welcome": 3})
    session.notify_unhandled("news", {"bye": 4})
    frame = session.frame_to_send(at(1))
    assert frame is not None
    assert frame.unhandled == {("mail", "welcome"): 3, ("mail", "bye"): 2, ("news", "bye"): 4}


def test_a_frame_without_jobs_makes_no_room() -> None:
    """As it took none."""
    session = a_session()
    session.handle_window(Window(jobs=10))
    session.opened([], [])
    assert session.frame_to_send(at(1)) is not None
    assert not session.handle_written()
