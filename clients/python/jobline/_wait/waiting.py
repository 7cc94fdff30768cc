"""`Waiting`: one wait over broken connections: what has not ended, and until when."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from jobline._arguments import message_of
from jobline._enums import JobState
from jobline._job_end import JobEnd, hidden_result
from jobline._partial import Partial
from jobline._requests import NOT_OURS
from jobline._times import Seconds, seconds_of, to_duration
from jobline.errors import Internal, WaitTimeout
from jobline.v1 import job_service_pb2 as pb

# A wait for more jobs has a call of its own.
SHARED_IDS_MAX = 100

# How long a call may wait; the protocol's limit.
WAIT_SECONDS_MAX = 3600.0

_FINAL = frozenset({JobState.COMPLETED, JobState.DEAD, JobState.CANCELLED, JobState.EXPIRED})


def _unmoved() -> float:
    return 0.0


class Waiting:
    """The state of a wait over broken connections: jobs that have not ended, and the deadline.
    `moved` returns by how many seconds a test has moved the clock of its server.
    """

    def __init__(
        self,
        now: float,
        ids: Iterable[int],
        timeout: Seconds,
        *,
        partials: bool = False,
        moved: Callable[[], float] = _unmoved,
    ) -> None:
        self._partials = partials
        self._seen = (0, 0)
        self.remaining = dict.fromkeys(ids)
        self.timeout = seconds_of(timeout)
        self._moved = moved
        self._moved_before = moved()
        self._until = now + self.timeout

    @property
    def until(self) -> float:
        """When it ends. A test that moves the clock of its server brings it nearer."""
        return self._until - (self._moved() - self._moved_before)

    @property
    def is_moved(self) -> bool:
        """Whether a test has moved the clock since. If so, jobs may have ended in the time that it
        skipped, although the client has not heard of it yet.
        """
        return self._moved() != self._moved_before

    def is_shared(self) -> bool:
        """Returns whether it shares calls with other waits. Where many results may come, or pieces
        of them, their reader sets the pace; and a refusal of what is not allowed is its own.
        """
        are_ids = all(type(id_) is int and 0 < id_ < 1 << 64 for id_ in self.remaining)
        is_small = 0 < len(self.remaining) <= SHARED_IDS_MAX and not self._partials
        return are_ids and is_small and 0 < self.timeout <= WAIT_SECONDS_MAX

    def request(self, now: float) -> pb.WaitRequest | None:
        """Returns the first request, or the next one after a failure; None when no job is left.
        Without time left it asks for what has ended already, so that a late caller still learns
        whether there is a server.
        """
        if not self.remaining:
            return None
        left = to_duration(max(0.0, self.until - now))
        ids = list(self.remaining)
        return message_of(pb.WaitRequest, ids=ids, timeout=left, partials=self._partials)

    def take(self, response: pb.WaitResponse) -> JobEnd:
        """Handles a response; returns the job's end. Raises Internal for what is none, or another
        job's.
        """
        self._refuse_another(response)
        end = JobEnd.from_message(response)
        if not end.not_found and end.state not in _FINAL:
            raise Internal(
                f"the answer to a wait says that job {end.id} ended {end.state.name}", NOT_OURS
            )
        del self.remaining[end.id]
        return end

    def _refuse_another(self, response: pb.WaitResponse) -> None:
        if response.id not in self.remaining:
            raise Internal(
                f"the answer to a wait is of job {response.id}, which was not asked for", NOT_OURS
            )

    def take_piece(self, response: pb.WaitResponse) -> Partial | None:
        """Handles a response; returns the piece in it, None if it has none, or one that came
        before. Raises Internal as `take` does, and PermissionDenied for a piece that the caller may
        not see.
        """
        if response.result_hidden and response.partial_number:
            raise hidden_result(response.id)
        if not response.partial:
            self.take(response)
            return None
        self._refuse_another(response)
        seen = self._seen
        self._seen = response.partial_delivery, response.partial_number
        if seen >= self._seen and seen[0] == self._seen[0]:
            self._seen = seen
            return None
        return Partial.from_message(response)

    def timed_out(self) -> WaitTimeout:
        """Returns the error that names a job that has not ended."""
        job_id = next(iter(self.remaining))
        return WaitTimeout(f"job {job_id} has not ended within {self.timeout:g} s", job_id)
