"""The table from refusals to statuses."""

from __future__ import annotations

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from jobline.v1 import errors_pb2
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.rpc.errors import (
    CODES,
    DETAILS_KEY,
    DOMAIN,
    QUOTAS,
    Status,
    bug_status,
    malformed_status,
    status_of,
)

REASONS = set(errors_pb2.ErrorReason.keys())
# What guarantee G5 calls definite: nothing was stored.
DEFINITE = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.UNAUTHENTICATED,
}
UNKNOWN_OUTCOME = {
    RefusalKind.DRAINING,
    RefusalKind.DATA_LOSS,
    RefusalKind.STORAGE_FAILED,
    RefusalKind.SHARD_UNAVAILABLE,
}


def details_of(status: Status) -> status_pb2.Status:
    """The google.rpc.Status of the trailing metadata."""
    return status_pb2.Status.FromString(dict(status.metadata)[DETAILS_KEY])


@pytest.mark.parametrize("kind", RefusalKind)
def test_every_refusal_has_a_code_and_a_reason_of_the_protocol(kind: RefusalKind) -> None:
    """No kind is forgotten, and clients know every reason."""
    status = status_of(Refused(kind, "because"))

    info = error_details_pb2.ErrorInfo()
    assert details_of(status).details[0].Unpack(info)
    assert info.domain == DOMAIN
    assert f"ERROR_REASON_{info.reason}" in REASONS
    assert details_of(status).code == status.code.value[0]


@pytest.mark.parametrize("kind", RefusalKind)
def test_a_code_is_definite_exactly_where_nothing_was_stored(kind: RefusalKind) -> None:
    """G5: a retry after any other code needs a key."""
    assert (CODES[kind] in DEFINITE) == (kind not in UNKNOWN_OUTCOME)


def test_a_field_is_named_twice() -> None:
    """In the message for people, in BadRequest for programs."""
    status = status_of(Refused(RefusalKind.INVALID_FIELD, "is required", field="jobs[3].job_key"))

    bad = error_details_pb2.BadRequest()
    assert details_of(status).details[1].Unpack(bad)
    assert bad.field_violations[0].field == "jobs[3].job_key"
    assert status.message == "jobs[3].job_key: is required"


@pytest.mark.parametrize("kind", [kind for kind in RefusalKind if kind in QUOTAS])
def test_a_full_server_says_what_is_full_and_when_to_come_back(kind: RefusalKind) -> None:
    """QuotaFailure and RetryInfo."""
    status = status_of(Refused(kind, "full", retry_after_ms=1_500))

    quota, retry = error_details_pb2.QuotaFailure(), error_details_pb2.RetryInfo()
    assert details_of(status).details[1].Unpack(quota)
    assert details_of(status).details[2].Unpack(retry)
    assert quota.violations[0].subject == kind.value.lower()
    assert retry.retry_delay.ToMilliseconds() == 1_500


def test_messages_are_short() -> None:
    """However long a message is, headers have a limit."""
    assert len(status_of(Refused(RefusalKind.DATA_LOSS, "x" * 100_000)).message) == 1_024


def test_a_bug_tells_only_its_number() -> None:
    """The rest is in the log."""
    status = bug_status("abc-1")

    assert status.code is grpc.StatusCode.INTERNAL
    assert status.message == "a bug in the server, logged as abc-1"
    assert malformed_status().code is grpc.StatusCode.INVALID_ARGUMENT
