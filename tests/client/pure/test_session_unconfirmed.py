"""The worker's side of the stream towards a server that confirms nothing: one that is slow, and one
that breaks the protocol.
"""

from __future__ import annotations

import pytest

from jobline._stream.settles import UNCONFIRMED_MAX
from jobline.errors import Internal
from tests.client.pure.session_frames import confirm, connected, new_session, opened, run, said

WINDOW = 8
# What a worker settles at most without a confirm before it leaves.
BOUND = (UNCONFIRMED_MAX + 6) * WINDOW + 100 + 2 * WINDOW + 100


class Unconfirmed:
    """A worker that settles at once, and a server that decides at once and commits later."""

    def __init__(self):
        self.session = new_session(window=WINDOW)
        connected(self.session)
        self.window = WINDOW
        self.undecided = 0  # the server's: what it has handed out and not seen settled
        self.settled = 0
        self.seqs: list[int] = []

    def step(self, count):
        """The server hands out so many jobs, one frame each, and the worker settles each."""
        for _ in range(count):
            self.session.handle_frame(0.0, run(self.settled + 1, 1, 1))
            self.settled += 1
            self.undecided += 1
            self.session.ack(self.settled, 1)
            self.send()

    def send(self):
        frame = said(self.session)
        self.seqs += [settle.seq for settle in frame.settles]
        self.undecided -= sum(len(settle.ack_ids) for settle in frame.settles)
        if frame.HasField("window"):
            self.window = frame.window.max_in_flight

    def confirm_all(self):
        while self.seqs:
            self.session.handle_frame(0.0, confirm(self.seqs.pop(0)))
            self.send()

    def reconnect(self, *held):
        self.session.disconnect()
        self.session.connect(1.0)
        (first,) = self.session.frames_to_send(1.0)
        self.window = first.window.max_in_flight
        self.session.handle_frame(1.0, opened(*held))
        self.send()


def test_a_server_that_commits_nothing_for_long_is_asked_for_jobs_all_the_same():
    """A disk may be full for minutes. It keeps to the window, and so comes to an end by itself."""
    both = Unconfirmed()
    for _ in range(50):
        # As large as settles can be: all that the worker has settled goes out together.
        room = both.window - both.undecided
        for _ in range(room):
            both.session.handle_frame(0.0, run(both.settled + 1, 1, 1))
            both.settled += 1
            both.undecided += 1
            both.session.ack(both.settled, 1)
        both.send()
    assert both.settled == (UNCONFIRMED_MAX + 1) * WINDOW
    assert both.window == WINDOW
    both.confirm_all()
    both.step(1)
    both.confirm_all()
    assert both.session.is_confirmed


def test_a_server_that_delivers_and_never_confirms_is_left():
    """What it is to confirm would fill the memory. Nothing is lost: all is settled again on the
    next stream, and jobs are asked for when some of it is confirmed.
    """
    both = Unconfirmed()
    with pytest.raises(Internal, match="has not confirmed") as caught:
        both.step(2 * BOUND)
    assert caught.value.reason == "UNCONFIRMED"
    assert both.settled < BOUND
    assert both.window == 0
    again = list(both.seqs)
    both.seqs.clear()
    both.reconnect()
    assert both.seqs == again
    assert both.window == 0
    both.confirm_all()
    assert both.window == WINDOW
    assert both.session.is_confirmed


def test_a_server_that_says_of_each_stream_that_other_jobs_are_held_is_left():
    """Each is given back, which it is to confirm as well."""
    both = Unconfirmed()

    def reconnect(first):
        both.reconnect(*[(id_, 1) for id_ in range(first, first + 100)])

    for first in range(1, BOUND - 100, 100):
        reconnect(first)
    with pytest.raises(Internal, match="has not confirmed"):
        reconnect(BOUND)


def test_more_jobs_than_any_window_has_cannot_be_held():
    session = new_session(window=WINDOW)
    session.connect(0.0)
    session.frames_to_send(0.0)
    frame = opened()
    frame.opened.held_ids.extend(range(1, 200_002))
    frame.opened.held_deliveries.extend([1] * 200_001)
    with pytest.raises(Internal, match="200001 jobs are held"):
        session.handle_frame(0.0, frame)
    assert not session.is_open
