"""A job is either begun or released, however close to a drain it is."""

from __future__ import annotations

import threading

import pytest

from jobline._leased import LeasedJob
from jobline._stream.frames import opening_of
from jobline._stream.session import Session
from jobline._worker.shared_session import SharedSession
from jobline._worker.window import Window
from jobline.v1 import job_pb2
from jobline.v1 import job_service_pb2 as pb
from tests.client.pure.session_frames import connected, jobs


class Running:
    """What runs; when a drain looks, a runner begins the job, as fast as it can."""

    def __init__(self, session: SharedSession, job: LeasedJob) -> None:
        self._session = session
        self._job = job
        self.began: list[bool] = []
        self._leases: set[tuple[int, int]] = set()
        self._thread = threading.Thread(target=self._begin)

    def __contains__(self, lease: object) -> bool:
        is_running = lease in self._leases
        if not self._thread.is_alive() and not self.began:
            self._thread.start()
            self._thread.join(0.2)  # it may have to wait for the drain
        return is_running

    def _begin(self) -> None:
        self._leases.add((self._job.id, self._job.delivery))
        self.began.append(self._session.begin(self._job))

    def join(self) -> None:
        self._thread.join()


@pytest.mark.parametrize("mode", [job_pb2.DELIVERY_MODE_UNSPECIFIED, job_pb2.DELIVERY_MODE_ONCE])
def test_what_is_released_never_begins(mode: job_pb2.DeliveryMode.ValueType) -> None:
    """Another worker may have it at that moment."""
    inner = Session(
        opening_of(pb.WorkerDescription(), queues=[("q", 1)], handlers=[]),
        window=10,
        window_bytes=1 << 20,
    )
    connected(inner)
    inner.handle_frame(0.0, jobs((1, 5)))
    session = SharedSession(inner, Window(0.0, runners=1), 1 << 20)
    job = LeasedJob(1, 5, "q", job_pb2.JobOptions(delivery=mode), b"")
    session.drain()
    running = Running(session, job)
    released = session.release_held(keep=running)
    running.join()
    assert (released, running.began) == ([(1, 5)], [False])
