"""Converts the phases of a job: checks what is pushed, shows where each stands."""

from __future__ import annotations

from jobline.v1 import job_pb2
from jobline_server.engine import limits
from jobline_server.engine.commands import Push
from jobline_server.engine.phases import progress_within
from jobline_server.engine.push_fields import payload_field
from jobline_server.engine.values import AttemptOutcome, JobState
from jobline_server.rpc.validate import fields
from jobline_server.runtime.views import JobView
from jobline_server.wire.errors import fill_error
from jobline_server.wire.times import fill_time

_TOO_LARGE = f"must be at most {limits.PHASED_PAYLOAD_BYTES_MAX} bytes for a job with phases"


def check_phased(command: Push) -> None:
    """Refuses jobs with phases whose payload leaves too little room for the results of these."""
    bytes_max, rows = limits.PHASED_PAYLOAD_BYTES_MAX, command.rows
    if max(map(len, rows.payloads), default=0) > bytes_max:
        for index, (payload, options) in enumerate(zip(rows.payloads, rows.options, strict=True)):
            if len(payload) > bytes_max and options.rules.phases:
                raise fields.too_large(payload_field(command, index), _TOO_LARGE)
    if command.options.rules.phases and command.payloads.bytes_max > bytes_max:
        too_large = [len(payload) > bytes_max for payload in command.payloads]
        field = payload_field(command, len(rows) + too_large.index(True))
        raise fields.too_large(field, _TOO_LARGE)


def fill_phases(message: job_pb2.Job, view: JobView, *, with_results: bool) -> None:
    """Adds the phases of a job: the finished ones, the one that it is at, and the others."""
    names = view.options.rules.phases
    finished = len(view.phases)
    for index, name in enumerate(names):
        phase = message.phases.add(name=name, state=job_pb2.PHASE_STATE_PENDING)
        if index < finished:
            _fill_finished(phase, view, index, with_result=with_results)
        elif _outcome_of(view) is JobState.COMPLETED:
            # Its worker finished the job without saying so of the phase.
            phase.state, phase.progress = job_pb2.PHASE_STATE_COMPLETED, 100.0
        elif index == finished:
            phase.progress = progress_within(finished, view.progress, len(names))
            phase.message = view.progress_message
            _fill_current(phase, view)


def _outcome_of(view: JobView) -> JobState:
    return view.stale_from or view.state


def _fill_finished(phase: job_pb2.Phase, view: JobView, index: int, *, with_result: bool) -> None:
    done = view.phases[index]
    phase.state, phase.progress = job_pb2.PHASE_STATE_COMPLETED, 100.0
    phase.attempt = done.attempt
    phase.started_at.SetInParent()
    fill_time(phase.started_at, done.started_ms)
    phase.ended_at.SetInParent()
    fill_time(phase.ended_at, done.ended_ms)
    if with_result:
        phase.result = done.result


def _fill_current(phase: job_pb2.Phase, view: JobView) -> None:
    """Fills the state of the phase that a job is at: FAILED if its last attempt failed in it."""
    if view.state is JobState.ACTIVE:
        phase.state = job_pb2.PHASE_STATE_ACTIVE
        return
    last = view.history[-1] if view.history else None
    since_ms = view.phases[-1].ended_ms if view.phases else 0
    if last is None or last.outcome is not AttemptOutcome.FAILED or last.ended_ms < since_ms:
        return
    phase.state = job_pb2.PHASE_STATE_FAILED
    phase.ended_at.SetInParent()
    fill_time(phase.ended_at, last.ended_ms)
    if last.error is not None:
        fill_error(phase.error, last.error)
