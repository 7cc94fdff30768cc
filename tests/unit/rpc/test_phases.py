"""Phases of a job as operators see them: where each stands."""

from __future__ import annotations

from dataclasses import replace

from jobline.v1 import job_pb2
from jobline_server.engine.phases import FinishedPhase
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import (
    Attempt,
    AttemptOutcome,
    JobError,
    JobOptions,
    JobState,
)
from jobline_server.rpc.convert.jobs import fill_job
from jobline_server.runtime.views import JobView

PENDING, ACTIVE = job_pb2.PHASE_STATE_PENDING, job_pb2.PHASE_STATE_ACTIVE
COMPLETED, FAILED = job_pb2.PHASE_STATE_COMPLETED, job_pb2.PHASE_STATE_FAILED
DONE = FinishedPhase(1_000, 2_000, 1, b"rows")
OPTIONS = JobOptions(rules=JobRules(phases=("parse", "load", "check")))
VIEW = JobView(
    7,
    "q",
    JobState.ACTIVE,
    OPTIONS,
    b"",
    0,
    phases=(DONE,),
    progress=50.0,
    progress_message="at row 7",
)


def failed(ended_ms: int, outcome: AttemptOutcome = AttemptOutcome.FAILED) -> Attempt:
    return Attempt(1, 1, "w", 0, ended_ms, outcome, JobError("Boom"))


def shown(view: JobView, *, with_payload: bool = True) -> job_pb2.Job:
    message = job_pb2.Job()
    fill_job(message, view, with_payload=with_payload)
    return message


def states(view: JobView) -> list[int]:
    return [phase.state for phase in shown(view).phases]


def test_finished_current_and_later_phases_are_told_apart() -> None:
    parse, load, check = shown(VIEW).phases
    assert (parse.name, parse.state, parse.progress, parse.result) == (
        "parse",
        COMPLETED,
        100.0,
        b"rows",
    )
    assert (parse.started_at.seconds, parse.ended_at.seconds, parse.attempt) == (1, 2, 1)
    assert (load.state, load.progress, load.message) == (ACTIVE, 50.0, "at row 7")
    assert (check.state, check.progress) == (PENDING, 0.0)


def test_lists_leave_out_results() -> None:
    assert shown(VIEW, with_payload=False).phases[0].result == b""


def test_a_phase_has_failed_if_the_last_attempt_failed_in_it() -> None:
    """Not if that attempt failed in an earlier one, or was lost."""
    waiting = replace(VIEW, state=JobState.SCHEDULED)
    assert states(waiting) == [COMPLETED, PENDING, PENDING]
    found = shown(replace(waiting, history=(failed(3_000),))).phases[1]
    assert (found.state, found.error.type, found.ended_at.seconds) == (FAILED, "Boom", 3)
    assert states(replace(waiting, history=(failed(1_500),)))[1] == PENDING
    lost = failed(3_000, AttemptOutcome.STALLED)
    assert states(replace(waiting, history=(failed(2_500), lost)))[1] == PENDING
    silent = failed(3_000)._replace(error=None)
    assert states(replace(waiting, history=(silent,), phases=()))[0] == FAILED


def test_all_phases_of_a_completed_job_are_completed() -> None:
    """Also where its worker did not finish each: it is done."""
    assert states(replace(VIEW, state=JobState.COMPLETED)) == [COMPLETED] * 3
    stale = replace(VIEW, state=JobState.STALE, stale_from=JobState.COMPLETED)
    assert states(stale) == [COMPLETED] * 3
    assert states(replace(VIEW, options=JobOptions())) == []
