"""An operation is a fact that changes nothing of a shard; cancelled jobs are kept as runs."""

from __future__ import annotations

import pytest

from jobline_server.engine import limits
from jobline_server.engine.decide.operations import decide_record_operation
from jobline_server.engine.endings import OperationNoted
from jobline_server.engine.load import Load
from jobline_server.engine.operations import CancelledJobs, CancelledRuns, Operation
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import Now
from tests.unit.engine.effects_of import take_endings


def test_an_operation_goes_to_the_ended_store_with_its_commit() -> None:
    shard = Shard(0, epoch=1, load=Load())
    operation = Operation("o", "PauseQueue", "ops", 1_000)
    decide_record_operation(shard, Now(1_000, 5), operation)
    assert len(shard.entries) == 1
    assert take_endings(shard) == [OperationNoted(operation)]


def test_neighbours_with_the_same_time_are_one_run() -> None:
    runs = CancelledRuns()
    for job_id, run_at_ms in ((5, 0), (6, 0), (7, 9), (8, 9), (9, 9), (11, 9)):
        runs.add(job_id, run_at_ms)
    assert runs.jobs() == CancelledJobs(((5, 2, 0), (7, 3, 9), (11, 1, 9)))


def test_more_runs_than_are_kept_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is not all, which is said."""
    monkeypatch.setattr(limits, "OPERATION_RUNS_MAX", 2)
    runs = CancelledRuns()
    for job_id in (1, 3, 4, 6, 7):
        runs.add(job_id, 0)
    assert runs.jobs() == CancelledJobs(((1, 1, 0), (3, 2, 0)), cut=True)


def test_nothing_was_cancelled() -> None:
    assert CancelledRuns().jobs() == CancelledJobs()
