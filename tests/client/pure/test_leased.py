"""Jobs of a run: what they share, and what each of them has of its own in columns."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from jobline import JobOptions
from jobline._leased import LeasedJob
from jobline._requests import jobs_of
from jobline.v1 import job_pb2
from jobline.v1 import job_service_pb2 as pb

TEXT = st.text("ab", min_size=1, max_size=2)
HEADERS = st.dictionaries(st.sampled_from("xyz"), TEXT, max_size=3)


def run_of(*own: dict[str, str], shared=None, job_keys=(), first_id=40):
    """A run of as many jobs, with headers of their own."""
    run = job_pb2.LeasedRun(
        first_id=first_id,
        delivery=7,
        queue="q",
        payloads=[b"%d" % index for index in range(len(own))],
        options=job_pb2.JobOptions(name="n", headers=shared or {}),
        lease_ms=30_000,
        job_keys=job_keys,
    )
    for key in sorted({key for headers in own for key in headers}):
        run.header_columns.add(key=key, values=[headers.get(key, "") for headers in own])
    return run


def test_a_plain_run_has_nothing_of_its_own():
    """Neither headers nor keys; what is shared is one object."""
    first, second = LeasedJob.from_run(run_of({}, {}, shared={"a": "1"}))
    assert (first.id, first.payload, second.id, second.payload) == (40, b"0", 41, b"1")
    assert (first.headers, first.job_key, second.job_key) == ({"a": "1"}, "", "")
    assert first.options_message is second.options_message


def test_headers_of_a_job_go_before_those_that_the_run_shares():
    """And a job without a value has what the others share, or no such header."""
    run = run_of({"a": "own", "b": "1"}, {"b": "2"}, {}, shared={"a": "all"})
    jobs = LeasedJob.from_run(run)
    assert [job.headers for job in jobs] == [
        {"a": "own", "b": "1"},
        {"a": "all", "b": "2"},
        {"a": "all"},
    ]
    assert jobs[0].options == JobOptions(name="n", headers={"a": "own", "b": "1"})
    assert len({id(job.options_message) for job in jobs}) == 1


def test_a_job_without_any_header_has_options_without_headers():
    """As if it had come alone."""
    _, plain = LeasedJob.from_run(run_of({"b": "1"}, {}))
    assert (plain.headers, plain.options) == ({}, JobOptions(name="n"))


def test_each_job_of_a_run_has_its_key():
    """Or none."""
    run = run_of({}, {}, {}, job_keys=["k", "", "l"])
    assert [job.job_key for job in LeasedJob.from_run(run)] == ["k", "", "l"]


def test_a_pull_reads_the_columns_of_its_runs():
    """They come before the single jobs."""
    response = pb.PullResponse(runs=[run_of({"b": "1"}, {"b": "2"}, job_keys=["k", "l"])])
    response.jobs.add(id=1, job_key="m")
    assert [(job.headers, job.job_key) for job in jobs_of(response)] == [
        ({"b": "1"}, "k"),
        ({"b": "2"}, "l"),
        ({}, "m"),
    ]


def test_a_job_of_a_run_can_be_given_to_another_process():
    """As any leased job can, with its own headers."""
    _, job = LeasedJob.from_run(run_of({"b": "1"}, {"b": "2"}, job_keys=["k", "l"]))
    arrived = pickle.loads(pickle.dumps(job))
    assert (arrived.id, arrived.headers, arrived.job_key) == (41, {"b": "2"}, "l")


@given(own=st.lists(HEADERS, min_size=1, max_size=5), shared=HEADERS)
def test_headers_are_those_of_the_job_over_those_of_the_run(own, shared):
    """Whatever jobs have of their own."""
    jobs = LeasedJob.from_run(run_of(*own, shared=shared))
    assert [job.headers for job in jobs] == [{**shared, **headers} for headers in own]
