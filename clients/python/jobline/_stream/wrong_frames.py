"""What a frame has that no server of this protocol sends. Pure.

Such a frame is refused before any of it is taken: the worker leaves the server, and opens another
stream after a pause.
"""

from __future__ import annotations

from jobline._requests import NOT_OURS
from jobline.errors import Internal
from jobline.v1 import job_service_pb2 as pb

# The largest id of a job.
ID_MAX = (1 << 64) - 1


def refuse_wrong(frame: pb.StreamResponse, *, is_open: bool) -> None:
    """Raises Internal for such a frame. `is_open`: the server has answered on this stream."""
    if is_open and frame.HasField("opened"):
        raise Internal("the server opened a stream twice", NOT_OURS)
    jobs, leases = len(frame.opened.held_ids), len(frame.opened.held_deliveries)
    if jobs != leases:
        raise Internal(f"the server says that {jobs} jobs are held, by {leases} leases", NOT_OURS)
    for run in frame.runs:
        if run.first_id + len(run.payloads) - 1 > ID_MAX:
            raise Internal("the server sent a run of jobs with ids that are none", NOT_OURS)
