"""The bytes by which jobs are looked for: in the blob of each job that a filter wants, and in few
others.
"""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline_server.engine.endings import JobsEnded, RunsEnded
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.queue import Queue
from jobline_server.engine.rules import JobRules
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, JobOptions, JobState
from jobline_server.storage.blob_parts import has_parts
from jobline_server.storage.codec import blob_parts, pushed_ms_of, records_of
from jobline_server.storage.codec.ended import encode_ended_job, encode_ended_run
from jobline_server.storage.codec.ended_search import BATCHES_MAX
from jobline_server.storage.ended_store import EndedRow
from tests.pushed_payloads import payloads_of, with_columns
from tests.storage import value_strategies as own

QUEUE = Queue("q", 1, 5)
EU = JobOptions(headers=(("to", "me"),), rules=JobRules(tags=("eu", "night"), batch_id=77))


def row_of_job(options: JobOptions, ties: Ties = NO_TIES, payload: bytes = b"x") -> EndedRow:
    job = Job(7, QUEUE, options, payload, 100)
    job.ties = ties
    blob = encode_ended_job(JobsEnded(JobState.COMPLETED, [job], 900, kept=True), job)
    return EndedRow(7, 1, "q", options.name, 5, 900, 0, "", "", blob)


def row_of_run(lot: Lot) -> EndedRow:
    count = len(lot.payloads)
    ending = RunsEnded(lot, JobState.COMPLETED, array("q", (7,)), [count], 900, 1, "w", kept=True)
    return EndedRow(7, count, "q", "", 5, 900, 0, "", "", encode_ended_run(ending, 7, count))


def some(values: object) -> st.SearchStrategy[list[object]]:
    """A part of some values."""
    found = list(values)  # type: ignore[call-overload]
    return st.lists(st.sampled_from(found), unique=True) if found else st.just([])


@given(own.job_options, own.ties, st.data())
def test_a_job_has_the_bytes_of_all_that_it_is_wanted_for(options, ties, data):
    """Texts may be empty, and as long as one of them needs two bytes for its length."""
    row = row_of_job(options, ties)
    wanted = blob_parts(
        tags=data.draw(some(options.rules.tags)),
        headers=data.draw(some(options.headers)),
        group=data.draw(st.sampled_from(["", ties.group])),
        batches={options.rules.batch_id, data.draw(own.ids)},
    )
    assert has_parts(row.blob, wanted)


@given(own.job_options, own.payloads.flatmap(with_columns), st.data())
def test_a_row_of_several_jobs_has_the_bytes_of_what_each_is_wanted_for(options, payloads, data):
    """Headers may be those that all share, or stand in a column."""
    row = row_of_run(Lot(7, QUEUE, options, payloads, pushed_ms=100, run_at_ms=0))
    for record in records_of(row, range(7, 7 + row.count)):
        wanted = blob_parts(
            tags=data.draw(some(record.options.rules.tags)),
            headers=data.draw(some(record.options.headers)),
        )
        assert has_parts(row.blob, wanted)


def test_long_texts_are_found():
    """Their length takes two bytes."""
    tag, value = "t" * 128, "v" * 5_000
    options = JobOptions(headers=(("h", value),), rules=JobRules(tags=(tag,)))
    row = row_of_job(options, Ties(group="g" * 256))
    assert has_parts(row.blob, blob_parts(tags=[tag], headers=[("h", value)], group="g" * 256))


@pytest.mark.parametrize(
    "wanted",
    [
        blob_parts(tags=["e"]),
        blob_parts(tags=["eu", "day"]),
        blob_parts(headers=[("to", "m")]),
        blob_parts(headers=[("to", "")]),
        blob_parts(headers=[("t", "me")]),
        blob_parts(headers=[("me", "to")]),
        blob_parts(group="eu"),
        blob_parts(batches={76, 78}),
    ],
)
def test_a_job_of_something_else_has_them_not(wanted):
    """Nor one whose payload has the same words."""
    row = row_of_job(EU, Ties(group="acme"), b"e day to m t me 76")
    assert has_parts(row.blob, blob_parts(tags=["eu"], headers=EU.headers, group="acme"))
    assert not has_parts(row.blob, wanted)


def test_jobs_with_another_value_in_their_column_have_them_not():
    payloads = payloads_of([b"x", b"y"], {"trace": ["one", "two"]})
    blob = row_of_run(Lot(7, QUEUE, DEFAULT_OPTIONS, payloads, pushed_ms=100, run_at_ms=0)).blob
    assert has_parts(blob, blob_parts(headers=[("trace", "two")]))
    assert not has_parts(blob, blob_parts(headers=[("trace", "three")]))
    assert not has_parts(blob, blob_parts(headers=[("span", "two")]))


def test_many_batches_are_no_condition():
    """Each is one more pass over a blob."""
    assert blob_parts(batches=range(1, BATCHES_MAX + 1))
    assert blob_parts(batches=range(1, BATCHES_MAX + 2)) == blob_parts() == ()


def test_when_jobs_were_pushed_is_read_alone():
    payloads = payloads_of([b"x", b"y"])
    run = row_of_run(Lot(7, QUEUE, EU, payloads, pushed_ms=50, run_at_ms=0))
    assert (pushed_ms_of(row_of_job(EU)), pushed_ms_of(run)) == (100, 50)
