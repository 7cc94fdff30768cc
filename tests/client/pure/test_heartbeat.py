"""When a worker's stream sends a frame, and when its server counts as gone, whatever it says."""

from __future__ import annotations

import math

import pytest

from jobline._stream.heartbeat import SILENT_INTERVALS, Heartbeat
from jobline.v1 import job_service_pb2 as pb
from tests.client.pure.session_frames import connected, new_session, run, said

DURATION_MAX = 315_576_000_000  # seconds, of a google.protobuf.Duration
LEASE_MS_MAX = 2**63 - 1


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (-math.inf, 0.05),
        (-1.0, 0.05),
        (1e-9, 0.05),
        (0.0, 30.0),
        (10.0, 10.0),
        (86_400.0, 60.0),
        (math.inf, 60.0),
    ],
)
def test_no_interval_of_a_server_makes_a_storm_or_a_reconnect(given, taken):
    """Frames go out now and then, and the server is not taken for silent at once."""
    heartbeat = Heartbeat()
    heartbeat.connect(0.0)
    heartbeat.opened(0.0, given)
    assert heartbeat.next_frame(holds_leases=False) == pytest.approx(0.8 * taken)
    assert heartbeat.next_silence_check() == pytest.approx(taken / 2)
    checks = [heartbeat.is_silent(taken * half / 2) for half in range(2 * SILENT_INTERVALS + 2)]
    assert not any(checks[: 2 * SILENT_INTERVALS])
    assert checks[-1]


@pytest.mark.parametrize("seconds", [-DURATION_MAX, 0, DURATION_MAX])
def test_a_session_takes_any_interval_that_a_frame_can_have(seconds):
    session = new_session()
    session.connect(0.0)
    session.frames_to_send(0.0)
    answer = pb.StreamResponse(opened=pb.StreamOpened(session="s"))
    answer.opened.heartbeat_interval.seconds = seconds
    session.handle_frame(0.0, answer)
    session.frames_to_send(0.0)
    assert 0.04 <= session.next_deadline() <= 48.0


@pytest.mark.parametrize(
    ("lease_ms", "pause"),
    [(-LEASE_MS_MAX, 8.0), (0, 8.0), (1, 0.05), (3_000, 1.0), (LEASE_MS_MAX, 8.0)],
)
def test_no_lease_of_a_server_makes_a_storm(lease_ms, pause):
    """Each lease asks for three frames in its time: a millisecond, for thousands a second."""
    session = new_session()
    connected(session)
    session.handle_frame(0.0, run(1, 1, 1, lease_ms=lease_ms))
    said(session)
    assert session.next_deadline() == pytest.approx(pause)
