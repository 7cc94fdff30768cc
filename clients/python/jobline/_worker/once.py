"""Which jobs may run only once."""

from __future__ import annotations

from jobline._leased import LeasedJob
from jobline.v1 import job_pb2


def is_once(job: LeasedJob) -> bool:
    """Returns whether a job may run only once."""
    return job.options_message.delivery == job_pb2.DELIVERY_MODE_ONCE


class Once:
    """Tells it of many jobs, of which those of a run share their options."""

    def __init__(self) -> None:
        self._repeatable: job_pb2.JobOptions | None = None

    def is_once(self, job: LeasedJob) -> bool:
        """Returns whether a job may run only once."""
        if job.options_message is self._repeatable:
            return False
        if is_once(job):
            return True
        self._repeatable = job.options_message
        return False
