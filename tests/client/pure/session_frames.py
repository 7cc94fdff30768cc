"""Frames of a server, and a session to take them: for the tests of the worker's side of the
stream.
"""

from __future__ import annotations

from jobline._stream.frames import Announced, opening_of
from jobline._stream.session import Session
from jobline.v1 import job_pb2
from jobline.v1 import job_service_pb2 as pb

INTERVAL = 10.0


def new_session(window=8):
    worker = pb.WorkerDescription(id="w")
    opening = opening_of(worker, queues=[("q", 1)], handlers=[Announced("q", "")])
    return Session(opening, window=window, window_bytes=1 << 20)


def opened(*held, session="s1", resumed=None):
    answer = pb.StreamOpened(
        session=session,
        resumed=bool(held) if resumed is None else resumed,
        held_ids=[id_ for id_, _ in held],
        held_deliveries=[delivery for _, delivery in held],
    )
    answer.heartbeat_interval.seconds = int(INTERVAL)
    return pb.StreamResponse(opened=answer)


def jobs(*leases, reason=job_pb2.LEASE_REASON_FIRST, lease_ms=30_000):
    frame = pb.StreamResponse()
    for id_, delivery in leases:
        frame.jobs.add(id=id_, delivery=delivery, queue="q", reason=reason, lease_ms=lease_ms)
    return frame


def run(first_id, delivery, count, *, lease_ms=30_000):
    frame = pb.StreamResponse()
    payloads = [b"x"] * count
    frame.runs.add(first_id=first_id, delivery=delivery, payloads=payloads, lease_ms=lease_ms)
    return frame


def confirm(seq):
    return pb.StreamResponse(confirms=[pb.StreamConfirm(seq=seq)])


def revoke(id_, delivery, reason):
    return pb.StreamResponse(
        revokes=[
            pb.StreamRevoke(id=id_, delivery=delivery, reason=pb.RevokeReason.ValueType(reason))
        ]
    )


def connected(session, *held, now=0.0):
    session.connect(now)
    session.frames_to_send(now)
    received = session.handle_frame(now, opened(*held))
    session.frames_to_send(now)
    return received


def said(session, now=0.0):
    """What is sent now, as one frame."""
    merged = pb.StreamRequest()
    for frame in session.frames_to_send(now):
        merged.MergeFrom(frame)
    return merged
