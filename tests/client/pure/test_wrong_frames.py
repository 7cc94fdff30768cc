"""Frames that no server of the protocol sends: the stream is left, and nothing of them counts."""

from __future__ import annotations

import pytest

from jobline.errors import Internal
from tests.client.pure.session_frames import connected, jobs, new_session, opened, run


@pytest.mark.parametrize(
    ("ids", "deliveries"), [([1, 2], [1]), ([1], [1, 1]), ([], [1]), ([1], [])]
)
def test_held_jobs_and_their_deliveries_are_of_one_number(ids, deliveries):
    """A job without its delivery would be lost or given back, under a lease that is not known."""
    session = new_session()
    connected(session)
    session.handle_frame(0.0, jobs((1, 1)))
    session.disconnect()
    session.connect(1.0)
    session.frames_to_send(1.0)
    frame = opened(resumed=True)
    frame.opened.held_ids.extend(ids)
    frame.opened.held_deliveries.extend(deliveries)
    with pytest.raises(
        Internal, match=f"{len(ids)} jobs are held, by {len(deliveries)} leases"
    ) as caught:
        session.handle_frame(1.0, frame)
    assert caught.value.reason == "UNEXPECTED_ANSWER"
    assert not session.is_open
    assert session.held == {1: 1}


def test_a_stream_is_opened_once():
    """A second answer would lose what is held, or give back what runs."""
    session = new_session()
    connected(session)
    session.handle_frame(0.0, jobs((1, 1)))
    frame = jobs((2, 1))
    frame.MergeFrom(opened(session="another"))
    with pytest.raises(Internal, match="opened a stream twice") as caught:
        session.handle_frame(0.0, frame)
    assert caught.value.reason == "UNEXPECTED_ANSWER"
    assert session.session == "s1"
    assert session.held == {1: 1}
    session.disconnect()
    assert (
        connected(session, (1, 1), now=1.0).lost == []
    )  # the next stream has an answer of its own


def test_a_run_has_ids_that_are():
    """One more than the largest cannot be settled, which ended the worker."""
    session = new_session()
    connected(session)
    largest = (1 << 64) - 1
    with pytest.raises(Internal, match="ids that are none") as caught:
        session.handle_frame(0.0, run(largest, 1, 2))
    assert caught.value.reason == "UNEXPECTED_ANSWER"
    session.handle_frame(0.0, run(largest, 1, 1))
    assert session.held == {largest: 1}
