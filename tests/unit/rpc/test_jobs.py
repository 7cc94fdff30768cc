"""Jobs as operators see them: what is shown of a job's unique key."""

from __future__ import annotations

import pytest

from jobline.v1 import job_pb2
from jobline_server.engine.ties import Claim, Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, JobState
from jobline_server.rpc.convert.jobs import fill_job
from jobline_server.runtime.views import JobView


@pytest.mark.parametrize(
    ("state", "throttles", "is_shown"),
    [
        (JobState.READY, False, True),
        (JobState.ACTIVE, True, True),
        (JobState.COMPLETED, False, False),
        (JobState.STALE, False, False),
        (JobState.DEAD, True, True),
    ],
)
def test_a_job_that_has_ended_holds_its_key_only_if_it_throttles(
    state: JobState, throttles: bool, is_shown: bool
) -> None:
    ties = Ties(unique_key="k", claim=Claim(5_000, throttles=throttles))
    message = job_pb2.Job()
    fill_job(message, JobView(7, "q", state, DEFAULT_OPTIONS, b"", 0, ties=ties), with_payload=True)
    assert message.HasField("unique_until") is is_shown
