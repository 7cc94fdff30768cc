"""The window of a session: which jobs the worker asks for, and which a server may send. Pure.

A server counts a job no more as soon as it has decided its settle, and confirms the settle after
its commit, which may take minutes: a disk may be full. The worker keeps such settles. It sends up
to `UNCONFIRMED_MAX` of them before a confirm, each with at most a window of jobs, and settles one
window more: so a server that keeps to the window comes to an end by itself. From `PAUSE_WINDOWS` on
no jobs are asked for until some are confirmed, and a server that sends jobs all the same is left.
"""

from __future__ import annotations

from jobline._stream.settles import UNCONFIRMED_MAX
from jobline.errors import ErrorFacts, Internal
from jobline.v1 import job_service_pb2 as pb

# Windows of jobs that are settled and not confirmed: then no more jobs are asked for. Three more
# than a server comes to that keeps to the window: leases may be lost while it confirms nothing.
PAUSE_WINDOWS = UNCONFIRMED_MAX + 4
# Windows of those with which a server is left that sends jobs: a window of them was on its way when
# no more were asked for, and another one at hand.
LEAVE_WINDOWS = PAUSE_WINDOWS + 2
# Jobs beyond the windows: the two sides never agree to the job.
SURPLUS_JOBS = 100
# Jobs that a server may say are held, twice the largest window: those that are unknown here, for
# they were not taken or never came, are given back.
TOLD_MAX = 200_000


class AskedWindow:
    """How much may be unfinished here at any time, and what the current stream knows of that."""

    def __init__(self, jobs: int, payload_bytes: int) -> None:
        self._wanted = (jobs, payload_bytes)
        self._sent: tuple[int, int] | None = None
        self._largest = jobs  # jobs of that time may still be at hand

    def set(self, jobs: int, payload_bytes: int) -> None:
        """Sets how much; 0 jobs pauses."""
        self._wanted = (jobs, payload_bytes)
        self._largest = max(self._largest, jobs)

    def repeat(self) -> None:
        """Has the next frame say it again."""
        self._sent = None

    def put(self, frame: pb.StreamRequest, unconfirmed: int) -> None:
        """Adds it to a frame, if the server does not know it. `unconfirmed`: jobs that are settled
        and not confirmed.
        """
        window = self._wanted
        if unconfirmed >= PAUSE_WINDOWS * self._largest:
            window = (0, window[1])
        if window != self._sent:
            frame.window.max_in_flight, frame.window.max_in_flight_bytes = self._sent = window

    def refuse_surplus(self, frame: pb.StreamResponse, held: int, unconfirmed: int) -> None:
        """Raises Internal for far more jobs than were asked for: a server that goes on so would
        fill the memory. A correct one may send the window again beside jobs that are held: it
        counts a lease no more that a handler has ended by a call of its own, and the worker holds
        it until that handler returns.
        """
        told = len(frame.opened.held_ids)
        jobs = len(frame.jobs) + sum([len(run.payloads) for run in frame.runs])
        if held + jobs > 2 * self._largest + SURPLUS_JOBS:
            raise Internal(
                "the server sent more jobs than were asked for: "
                f"{held + jobs} at hand, of {self._largest}",
                ErrorFacts(reason="WINDOW_EXCEEDED"),
            )
        if told > TOLD_MAX:
            raise Internal(
                f"the server says that {told} jobs are held, more than any window",
                ErrorFacts(reason="WINDOW_EXCEEDED"),
            )
        if (jobs or told) and unconfirmed > LEAVE_WINDOWS * self._largest + SURPLUS_JOBS:
            raise Internal(
                f"the server sends jobs and has not confirmed {unconfirmed} that are settled",
                ErrorFacts(reason="UNCONFIRMED"),
            )
