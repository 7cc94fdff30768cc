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
        self.repeatable: job_pb2.JobOptions | None = None
        """The last options that were seen to let a job run again: whoever asks of each job compares
        them first.
        """

    def is_once(self, job: LeasedJob) -> bool:
        """Returns whether a job may run only once."""
        if job.options_message is self.repeatable:
            return False
        if is_once(job):
            return True
        self.repeatable = job.options_message
        return False
