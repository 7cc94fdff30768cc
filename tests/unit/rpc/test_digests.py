"""Digests of calls that a program repeats: they differ where the calls do, but for traces."""

from __future__ import annotations

import pytest

from jobline.v1 import flow_service_pb2, job_pb2, job_service_pb2
from jobline_server.rpc.convert.digests import digest_of_push, digest_with

TRACED = {
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "a=b",
}
OPTIONS = job_pb2.JobOptions


def shared(headers: dict[str, str]) -> job_service_pb2.PushRequest:
    options = OPTIONS(headers=headers) if headers else None
    return job_service_pb2.PushRequest(queue="q", payloads=[b"x"], options=options)


def in_rows(headers: dict[str, str]) -> job_service_pb2.PushRequest:
    options = OPTIONS(headers=headers) if headers else None
    rows = [job_pb2.NewJob(data=b"x", options=options), job_pb2.NewJob(data=b"y")]
    return job_service_pb2.PushRequest(queue="q", jobs=rows)


def in_columns(headers: dict[str, str]) -> job_service_pb2.PushRequest:
    columns = [job_pb2.HeaderColumn(key=key, values=[value]) for key, value in headers.items()]
    return job_service_pb2.PushRequest(queue="q", payloads=[b"x"], header_columns=columns)


@pytest.mark.parametrize("make", [shared, in_rows, in_columns])
def test_a_push_that_is_repeated_in_another_span_is_the_same(make):
    """A program that tries again does so with another `traceparent`, or none."""
    traced, other = make({**TRACED, "tenant": "a"}), make({**TRACED, "tenant": "b"})
    assert digest_of_push(traced) == digest_of_push(make({"tenant": "a"}))
    assert digest_of_push(make(TRACED)) == digest_of_push(make({}))
    assert digest_of_push(traced) != digest_of_push(other)
    assert traced == make({**TRACED, "tenant": "a"}), "the job keeps its trace context"


def test_a_flow_that_is_repeated_in_another_span_is_the_same():
    def digest(headers: dict[str, str], data: bytes = b"x") -> int:
        options = OPTIONS(headers=headers) if headers else None
        job = job_pb2.NewJob(data=data, options=options)
        return digest_with(7, flow_service_pb2.FlowJob(queue="q", job=job))

    assert digest(TRACED) == digest({})
    assert digest({**TRACED, "a": "b"}) == digest({"a": "b"})
    assert len({digest({}), digest({"a": "b"}), digest({}, b"y")}) == 3
