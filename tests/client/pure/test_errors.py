"""What a server sends as an error becomes one of the tree, with what its details say."""

from __future__ import annotations

import grpc
import pytest
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2
from hypothesis import given
from hypothesis import strategies as st

import jobline
from jobline import errors
from jobline._enums import EndReason, JobState
from jobline._job_end import JobEnd
from jobline._status import (
    DETAILS_KEY,
    error_from_rpc,
    error_from_status,
    outcome_unknown,
    raise_unknown,
)
from jobline._stream.frames import goaway_of
from jobline.v1 import errors_pb2, job_pb2
from jobline.v1 import job_service_pb2 as pb


def details(*messages, code=8):
    status = status_pb2.Status(code=code, message="no")
    for message in messages:
        packed = Any()
        packed.Pack(message)
        status.details.append(packed)
    return ((DETAILS_KEY, status.SerializeToString()),)


def info(reason, domain="jobline", **metadata):
    return error_details_pb2.ErrorInfo(reason=reason, domain=domain, metadata=metadata)


def test_details_are_read_as_googleapis_writes_them():
    """Reason, field, pause and metadata come from messages that googleapis itself has made."""
    violation = error_details_pb2.BadRequest.FieldViolation(field="jobs[3].lease", description="x")
    quota = error_details_pb2.QuotaFailure.Violation(subject="queue_full", description="1,000 wait")
    error = error_from_status(
        "RESOURCE_EXHAUSTED",
        "the queue is full",
        details(
            info("QUEUE_FULL", id="17"),
            error_details_pb2.BadRequest(field_violations=[violation]),
            error_details_pb2.QuotaFailure(violations=[quota]),
            error_details_pb2.RetryInfo(retry_delay=Duration(seconds=2, nanos=500_000_000)),
        ),
    )
    assert type(error) is jobline.QueueFull
    assert (error.reason, error.field, error.id) == ("QUEUE_FULL", "jobs[3].lease", 17)
    assert error.retry_after == 2.5
    assert error.facts.metadata["quota:queue_full"] == "1,000 wait"
    assert error.retryable
    assert error.definite


@pytest.mark.parametrize("code", list(grpc.StatusCode))
def test_every_code_has_a_class_and_definite_codes_are_definite(code):
    """Guarantee G5: definite codes, and no others, mean that nothing was stored."""
    definite = {
        "INVALID_ARGUMENT",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "UNAUTHENTICATED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
    }
    error = error_from_status(code.name, "no")
    assert error.definite == (code.name in definite)
    assert error.code == code.name


def test_every_reason_of_the_protocol_keeps_the_kind_of_its_code():
    """A reason never turns a refusal into something that is no refusal, or the other way round."""
    for value in errors_pb2.ErrorReason.DESCRIPTOR.values:
        reason = value.name.removeprefix("ERROR_REASON_")
        plain = error_from_status("FAILED_PRECONDITION", "no")
        error = error_from_status("FAILED_PRECONDITION", "no", details(info(reason)))
        assert error.definite == plain.definite, reason


def test_another_domain_is_not_believed():
    """A proxy's ErrorInfo is not one of ours."""
    error = error_from_status("UNAVAILABLE", "no", details(info("QUEUE_FULL", domain="other")))
    assert type(error) is jobline.Unavailable
    assert error.reason == ""


@given(st.binary(max_size=60))
def test_damaged_details_leave_the_code(raw):
    """Whatever stands in the trailing metadata, the code still has its class."""
    error = error_from_status("NOT_FOUND", "no", ((DETAILS_KEY, raw),))
    assert isinstance(error, jobline.NotFound)


def test_an_rpc_error_without_parts_is_internal():
    """A bare RpcError, as some interceptors raise, is not mistaken for a refusal."""
    error = error_from_rpc(grpc.RpcError("odd"))
    assert type(error) is jobline.Internal
    assert error.retryable


def test_a_bug_of_the_server_is_not_repeated():
    """With a reason it was the server that spoke: the same call would meet the same bug."""
    assert not error_from_status("INTERNAL", "no", details(info("BUG"))).retryable


def test_outcome_unknown_keeps_definite_errors():
    """Only a write without a definite answer is unknown, and it says how to repeat it."""
    refused = errors.QueueFull("full")
    assert outcome_unknown(refused) is refused
    lost = errors.Unavailable("gone")
    unknown = outcome_unknown(lost, request_id="r1")
    assert isinstance(unknown, jobline.OutcomeUnknown)
    assert (unknown.request_id, unknown.__cause__) == ("r1", lost)


def test_raise_unknown_raises_what_outcome_unknown_makes():
    """A definite error as it is, without itself as its cause; any other as the cause."""
    refused, lost = errors.QueueFull("full"), errors.Unavailable("gone")
    with pytest.raises(errors.QueueFull) as raised:
        raise_unknown(refused)
    assert (raised.value, raised.value.__cause__) == (refused, None)
    with pytest.raises(jobline.OutcomeUnknown) as unknown:
        raise_unknown(lost, request_id="r1")
    assert (unknown.value.request_id, unknown.value.__cause__) == ("r1", lost)


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        (JobState.DEAD, jobline.JobDead),
        (JobState.CANCELLED, jobline.JobCancelled),
        (JobState.EXPIRED, jobline.JobExpired),
    ],
)
def test_an_end_other_than_well_raises_its_own_error(state, kind):
    """Who waits for a result is told how the job ended, and which."""
    end = JobEnd(7, state, reason=EndReason.EXPLICIT_FAIL)
    with pytest.raises(kind) as caught:
        end.value()
    assert caught.value.id == 7
    assert caught.value.end is end


def test_a_job_that_is_not_there_is_not_found():
    """Its retention has passed, or it never was."""
    with pytest.raises(jobline.JobNotFound):
        JobEnd(7, JobState.UNSPECIFIED, not_found=True).value()


def test_a_result_that_may_not_be_seen_is_not_taken_for_none():
    completed = job_pb2.JOB_STATE_COMPLETED
    end = JobEnd.from_message(pb.WaitResponse(id=7, state=completed, result_hidden=True))
    assert (end.ok, end.result) == (True, b"")
    with pytest.raises(jobline.PermissionDenied, match="job 7 needs the verb read_payload"):
        end.value()
    assert JobEnd(7, JobState.COMPLETED).value() is None


def test_all_errors_are_exported_and_of_one_tree():
    """`except JoblineError` catches everything."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    for kind in kinds:
        if issubclass(kind, Exception) and not kind.__name__.startswith("_"):
            assert issubclass(kind, jobline.JoblineError)
            assert getattr(jobline, kind.__name__) is kind


def test_what_a_server_says_does_not_steer_a_terminal():
    """Nor write lines of a log in another's name. What a job's error says keeps its lines."""
    error = error_from_status("INTERNAL", "no\x1b[2J\r\n2026-01-01 INFO all is well\u202e")
    assert str(error) == "no\ufffd[2J 2026-01-01 INFO all is well\ufffd"
    of_job = errors.JobNotDone("job 1 is DEAD: E: a\nb\x1b]0;x\x07", JobEnd(1, JobState.DEAD))
    assert str(of_job) == "job 1 is DEAD: E: a\nb\ufffd]0;x\ufffd"
    goaway = goaway_of(pb.StreamGoaway(reason="bye\x1b[1m\nERROR"))
    assert goaway.reason == "bye\ufffd[1m ERROR"
