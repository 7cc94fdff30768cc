"""Headers and job keys of single pushes: apart from the options, in columns, and back."""

from __future__ import annotations

from typing import Any

import pytest

from jobline import InvalidArgument, JobOptions, NewJob, OutcomeUnknown
from jobline._push.batch import Own
from jobline._push.batching import HEADER_KEYS_MAX, BatchLimits, PushBatcher
from jobline._push.columns import headers_apart, options_and_own
from jobline._push.messages import (
    ROWS_MAX,
    BatchKey,
    batch_key_of,
    built,
    is_refused_by_column,
    request_of_jobs,
)
from jobline._push.refusals import handle_error
from jobline.errors import ErrorFacts, KeysFull, QueueFull
from tests.client.pure.test_pushing import batch, batch_key


def columns(request):
    return {column.key: list(column.values) for column in request.header_columns}


def many(jobs, *, in_rows=False, atomic=True, **how: Any):
    said: Any = how
    key = batch_key_of("q", said)
    return request_of_jobs(key, jobs, request_id=None, atomic=atomic, in_rows=in_rows)


# ---------------------------------------------------------------------- apart from the options


@pytest.mark.parametrize(
    ("options", "keywords", "rest", "headers"),
    [
        (None, {}, None, None),
        (None, {"headers": None}, None, None),
        (None, {"headers": {"a": "1"}}, None, {"a": "1"}),
        (None, {"headers": [("a", "1")]}, None, {"a": "1"}),
        (None, {"headers": {"a": "1"}, "priority": 2}, JobOptions(priority=2), {"a": "1"}),
        (JobOptions(priority=2), {}, JobOptions(priority=2), None),
        (JobOptions(headers={"a": "1"}), {}, None, {"a": "1"}),
        (JobOptions(priority=2, headers={"a": "1"}), {}, JobOptions(priority=2), {"a": "1"}),
        (
            JobOptions(priority=2, headers={"a": "1", "b": "1"}),
            {"headers": {"b": "2"}, "priority": 3},
            JobOptions(priority=3),
            {"a": "1", "b": "2"},
        ),
    ],
)
def test_headers_are_taken_out_of_the_options(options, keywords, rest, headers):
    """Those that are given override those of the options, as all options do."""
    assert options_and_own(options, keywords, "push") == (rest, headers, "")


@pytest.mark.parametrize(
    ("options", "keywords", "rest", "group"),
    [
        (None, {"group": "g"}, None, "g"),
        (JobOptions(group="g"), {}, None, "g"),
        (JobOptions(group="g"), {"group": "h", "cost": 2}, JobOptions(cost=2), "h"),
    ],
)
def test_groups_are_taken_out_of_the_options(options, keywords, rest, group):
    """So that pushes of different groups share a call."""
    assert options_and_own(options, keywords, "push") == (rest, None, group)


@pytest.mark.parametrize(
    "headers",
    [{"a": ""}, {"": "a"}, {str(number): "v" for number in range(HEADER_KEYS_MAX + 1)}],
)
def test_headers_that_no_column_can_hold_stay_in_the_options(headers):
    """In a column "" is no value, and one push would bring too many columns."""
    assert headers_apart(JobOptions(priority=1), headers) == (
        JobOptions(priority=1, headers=headers),
        None,
    )
    assert headers_apart(JobOptions(headers=headers)) == (JobOptions(headers=headers), None)


def test_options_without_headers_are_found_again():
    """Pushes with merged options find what they share without a comparison."""
    shared = JobOptions(name="n")
    first, second = (shared.merged(JobOptions(headers={"a": value})) for value in "12")
    assert headers_apart(first)[0] is headers_apart(second)[0] is shared
    again = first.merged(JobOptions(headers={"b": "3"}))
    assert headers_apart(again) == (shared, {"a": "1", "b": "3"})
    alone = JobOptions(name="n", headers={"a": "1"})
    assert headers_apart(alone)[0] is headers_apart(alone)[0]


# ---------------------------------------------------------------------- in a request


def test_headers_that_differ_are_columns_and_the_rest_is_shared():
    """A value that all jobs have is sent once; "" stands for a job without the header."""
    headers = [{"t": "1", "by": "me"}, {"t": "2", "by": "me", "u": "x"}, {"t": "3", "by": "me"}]
    request = built(batch(batch_key(name="n"), b"1", b"2", b"3", headers=headers))
    assert list(request.payloads) == [b"1", b"2", b"3"]
    assert columns(request) == {"t": ["1", "2", "3"], "u": ["", "x", ""]}
    assert (request.options.name, dict(request.options.headers)) == ("n", {"by": "me"})
    assert (request.request_id, request.HasField("atomic")) == ("r1", False)


def test_headers_that_are_the_same_need_no_column():
    """As one push has them, or as all have them."""
    for count in (1, 3):
        headers: Any = [{"t": "1"}] * count
        request = built(batch(batch_key(), *[b"x"] * count, headers=headers))
        assert (columns(request), dict(request.options.headers)) == ({}, {"t": "1"})


def test_keys_are_a_column_beside_jobs_without_one():
    """Not atomic, because they are different callers', and with the number of the call for those
    without a key.
    """
    request = built(batch(batch_key(), b"1", b"2", job_keys=["k", ""]))
    assert (list(request.payloads), list(request.job_keys)) == ([b"1", b"2"], ["k", ""])
    assert (request.HasField("atomic"), request.atomic, request.request_id) == (True, False, "r1")


def test_a_job_with_a_key_goes_alone_as_a_row():
    """So that a refusal of its key names the field that it always named."""
    request = built(batch(batch_key(), b"1", job_keys=["k"], headers=[{"a": "1"}]))
    assert [(job.data, job.job_key) for job in request.jobs] == [(b"1", "k")]
    assert (list(request.payloads), list(request.job_keys)) == ([], [])
    assert (request.atomic, request.request_id) == (False, "")
    assert dict(request.options.headers) == {"a": "1"}


def test_headers_of_a_wrong_type_are_the_fault_of_their_own_caller():
    """Together no field is named, so the batch is split; alone the field is named."""
    bad: Any = {"t": 5}
    with pytest.raises(InvalidArgument) as together:
        built(batch(batch_key(), b"1", b"2", headers=[{"t": "1"}, bad]))
    assert together.value.field is None
    for headers in ([bad], [bad, bad]):
        with pytest.raises(InvalidArgument) as alone:
            built(batch(batch_key(), *[b"1"] * len(headers), headers=headers))
        assert alone.value.field == "options.headers"


@pytest.mark.parametrize("bad", [{"t": 5}, {5: "t"}, {"t": "\udc00"}])
def test_headers_of_a_wrong_type_in_a_call_of_many_jobs_are_named(bad):
    """One caller gave all of them."""
    with pytest.raises(InvalidArgument, match="must be a mapping of text to text, not") as refused:
        many([NewJob(b"1", headers={"t": "1"}), NewJob(b"2", headers=bad)])
    assert refused.value.field == "options.headers"


def test_many_jobs_that_differ_in_headers_and_key_alone_are_a_lot():
    """What each has of its own goes before what all share, in the order of the jobs."""
    jobs = [NewJob(b"1", job_key="k", headers={"t": "1"}), b"2", NewJob(b"3", headers={"u": "3"})]
    request = many(jobs, headers={"t": "0"}, name="n", atomic=False)
    assert list(request.payloads) == [b"1", b"2", b"3"]
    assert list(request.job_keys) == ["k", "", ""]
    assert columns(request) == {"t": ["1", "", ""], "u": ["", "", "3"]}
    assert (request.options.name, dict(request.options.headers)) == ("n", {"t": "0"})
    assert (request.atomic, len(request.jobs)) == (False, 0)


@pytest.mark.parametrize(
    "job",
    [
        NewJob(b"1", priority=1),
        NewJob(b"1", name="n", headers={"t": "1"}),
        NewJob(b"1", delay=1),
        NewJob(b"1", headers={"t": ""}),
        NewJob({"a": 1}, headers={"t": "1"}),
    ],
)
def test_many_jobs_that_differ_in_more_are_rows(job):
    """As before there were columns."""
    assert len(many([job, b"2"]).jobs) == 2


def test_many_jobs_go_in_rows_where_columns_would_be_too_many():
    """One header key for each job would be a column with a value for every other."""
    few, more = (
        [NewJob(b"", headers={str(number): "v"}) for number in range(count)]
        for count in (HEADER_KEYS_MAX, HEADER_KEYS_MAX + 1)
    )
    assert len(many(few).header_columns) == HEADER_KEYS_MAX
    assert len(many(more).jobs) == HEADER_KEYS_MAX + 1
    assert len(many([NewJob(b"", job_key="k")] * (ROWS_MAX + 1)).jobs) == ROWS_MAX + 1


# ---------------------------------------------------------------------- refusals


def refusal(field):
    return InvalidArgument("no", ErrorFacts(fields={field: "bad"}))


@pytest.mark.parametrize(
    ("error", "job_keys", "headers", "is_split"),
    [
        (refusal("job_keys[1]"), "kl", None, True),
        (refusal("header_columns[0].values[1]"), "", ["1", "2"], True),
        (refusal("options.headers"), "", ["1", "2"], True),
        (refusal("options.headers"), "", ["1", "1"], False),
        (refusal("options.lease"), "", ["1", "2"], False),
        (KeysFull("full"), ["k", ""], None, True),
        (QueueFull("full"), ["k", ""], None, True),
        (KeysFull("full"), "kl", None, False),
        (KeysFull("full"), "", None, False),
    ],
)
def test_a_refusal_of_some_pushes_splits_the_batch(error, job_keys, headers, is_split):
    """What is about all of them is told to all at once."""
    batcher: PushBatcher[BatchKey, int] = PushBatcher(
        BatchLimits(),
        request_ids=lambda: "r",
        over=lambda _id, _known: None,
        chance=lambda: 0.5,
    )
    for index in range(2):
        own = {"t": headers[index]} if headers else None
        job_key = job_keys[index] if job_keys else ""
        batcher.add(0.0, batch_key(), b"x", index, Own(job_key, headers=own))
    (flying,) = batcher.batches_to_send(0.0)
    assert handle_error(batcher, 0.0, flying, error) is not is_split


@pytest.mark.parametrize(
    ("jobs", "error", "is_told_again"),
    [
        ([NewJob(b"1", job_key="k"), b"2"], refusal("job_keys[0]"), True),
        ([NewJob(b"1", headers={"t": "1"})], refusal("options.headers"), True),
        ([NewJob(b"1", job_key="k"), b"2"], QueueFull("full"), False),
        ([NewJob(b"1", priority=1), b"2"], refusal("jobs[0].options"), False),
        ([NewJob(b"1"), b"2"], refusal("payloads[0]"), False),
        ([NewJob(b"1", job_key="k")], OutcomeUnknown("lost"), False),
    ],
)
def test_a_refused_column_is_told_again_in_rows(jobs, error, is_told_again):
    """The caller of `push_many` knows its jobs by index, and a refusal in rows names them so."""
    assert is_refused_by_column(many(jobs), jobs, error) is is_told_again
    rows = many(jobs, in_rows=True)
    assert (len(rows.jobs), len(rows.header_columns), len(rows.job_keys)) in {
        (len(jobs), 0, 0),
        (0, 0, 0),
    }
