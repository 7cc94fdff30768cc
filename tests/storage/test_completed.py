"""Completed jobs that are left out: as runs of ids, whatever order they ended in."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from jobline_server.engine.endings import JobsEnded
from jobline_server.engine.values import JobState
from jobline_server.storage.completed import Completed

ids = st.integers(1, 1_200) | st.integers(2**49 - 300, 2**49 + 300)


def ended(job_ids: list[int]) -> JobsEnded:
    """Jobs that completed by one ack; only their ids matter here."""
    jobs = cast(Any, [SimpleNamespace(id=job_id) for job_id in job_ids])
    return JobsEnded(state=JobState.COMPLETED, jobs=jobs, ended_ms=1, kept=True)


@given(st.lists(ids, unique=True), st.integers(1, 50))
def test_jobs_left_out_in_any_order_become_the_fewest_runs(job_ids: list[int], acked: int) -> None:
    """Within blocks of ids and across them, and in blocks that are marked again later."""
    completed = Completed()
    for start in range(0, len(job_ids), acked):
        completed.leave_out(ended(job_ids[start : start + acked]))

    runs = [run for some in completed.left_out_runs() for run in some]

    assert [i for first, count in runs for i in range(first, first + count)] == sorted(job_ids)
    assert all(first + count < following for (first, count), (following, _) in pairwise(runs))
