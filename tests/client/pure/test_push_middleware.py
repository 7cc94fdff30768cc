"""Middleware around pushes: what it sees, what it may change, and how jobs travel afterwards."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobline import (
    AckLevel,
    InvalidArgument,
    JobOptions,
    NewJob,
    Pushed,
    PushMiddleware,
    PushOutcome,
)
from jobline._codec import JSON
from jobline._push.batch import Own
from jobline._push.messages import batch_key_of
from jobline._push.push_middleware import (
    Outgoing,
    batch_key_of_one,
    jobs_beside,
    outgoing_of,
    pushed_lot,
    shared_lot,
    through,
    through_plain,
)
from tests.client.pure.test_pushing import batch_key

CREATED = [Pushed(1, PushOutcome.CREATED, AckLevel.FSYNCED)]


class Adding(PushMiddleware):
    """Adds a letter to each payload, and notes what it was told."""

    def __init__(self, letter):
        self._letter = letter
        self.told = []

    def _changed(self, jobs):
        return [replace(job, payload=job.payload + self._letter) for job in jobs]

    async def around(self, jobs, call_next):
        self.told.append(await call_next(self._changed(jobs)))
        return self.told[-1]

    def around_plain(self, jobs, call_next):
        self.told.append(call_next(self._changed(jobs)))
        return self.told[-1]


def jobs_of(*payloads):
    return [Outgoing("q", payload, JobOptions()) for payload in payloads]


@pytest.mark.parametrize("is_async", [True, False])
async def test_the_first_is_outermost_and_each_hears_the_answer(is_async):
    """Around both clients alike."""
    first, second = Adding(b"1"), Adding(b"2")
    sent: list[bytes] = []

    def send(jobs):
        sent.extend(job.payload for job in jobs)
        return CREATED

    async def send_async(jobs):
        return send(jobs)

    middleware = [PushMiddleware(), first, second]
    if is_async:
        assert await through(middleware, jobs_of(b"x"), send_async) == CREATED
    else:
        assert through_plain(middleware, jobs_of(b"x"), send) == CREATED
    assert sent == [b"x12"]
    assert first.told == second.told == [CREATED]


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (jobs_of(b"1"), "1 jobs of 2"),
        ([Outgoing("q", b"", JobOptions()), Outgoing("r", b"", JobOptions())], "several queues"),
    ],
)
def test_what_one_call_cannot_push_is_refused(made, why):
    """A middleware that drops jobs would leave callers without an answer."""

    class Making(PushMiddleware):
        def around_plain(self, jobs, call_next):
            return call_next(made)

    with pytest.raises(InvalidArgument, match=why):
        through_plain([Making()], jobs_of(b"1", b"2"), lambda jobs: CREATED * len(jobs))


def test_a_job_goes_out_with_all_that_was_said_about_it():
    """What the call says for all, what the job says of its own, and what its payload is."""
    how = batch_key(
        queue="q", name="n", options=JobOptions(priority=1, headers={"a": "1"}), delay=5
    )
    own = JobOptions(priority=2, headers={"b": "2"})
    raw, json, keyed = outgoing_of(
        how, [b"raw", {"x": 1}, NewJob(b"k", options=own, job_key="k", delay=9)]
    )
    assert (raw.payload, raw.options, raw.delay) == (
        b"raw",
        JobOptions(name="n", priority=1, headers={"a": "1"}),
        5,
    )
    assert (json.payload, json.options.content_type) == (b'{"x":1}', JSON)
    assert (keyed.job_key, keyed.delay, keyed.options.priority) == ("k", 9, 2)
    assert keyed.options.headers == {"a": "1", "b": "2"}


def test_middleware_adds_headers_to_a_job():
    """They go before those that it has; the rest is as it was, and the job itself too."""
    job = Outgoing("q", b"x", JobOptions(name="n", headers={"a": "1", "b": "1"}), "k", delay=5)
    added = {"b": "2"}
    changed = job.with_headers(added)
    added["b"] = "3"
    headers = {"a": "1", "b": "2"}
    assert changed == replace(job, options=JobOptions(name="n", headers=headers))
    assert hash(changed.options) == hash(JobOptions(name="n", headers=headers))
    assert job.options.headers == {"a": "1", "b": "1"}
    bare = Outgoing("q", b"x", JobOptions(name="n"))
    assert bare.with_headers({"a": "1"}).options == JobOptions(name="n", headers={"a": "1"})


def test_jobs_that_are_alike_are_still_a_lot():
    """Whatever middleware has done to all of them."""
    jobs = outgoing_of(batch_key_of("q", {"name": "n", "delay": 5}), [b"1", b"2"])
    header = JobOptions(headers={"trace": "1"})
    changed = [replace(job, queue="r", options=job.options.merged(header)) for job in jobs]
    how, rest = shared_lot(changed, AckLevel.MEMORY)
    assert rest == [b"1", b"2"]
    assert (how.queue, how.options, how.delay, how.ack_level) == (
        "r",
        JobOptions(name="n", headers={"trace": "1"}),
        5,
        AckLevel.MEMORY,
    )


def test_jobs_that_differ_say_so_in_rows():
    """And share nothing."""
    jobs = outgoing_of(batch_key_of("q", {"delay": 5}), [b"1", NewJob(b"2", priority=1)])
    how, rest = shared_lot(jobs, None)
    assert rest == [
        NewJob(b"1", options=JobOptions(), delay=5),
        NewJob(b"2", options=JobOptions(priority=1), delay=5),
    ]
    assert (how.options, how.delay) == (None, None)


def test_jobs_that_differ_in_headers_and_key_share_the_rest():
    """As middleware that traces leaves them."""
    how = batch_key_of("q", {"delay": 5, "name": "n", "headers": {"by": "me"}})
    jobs = outgoing_of(how, [b"1", NewJob(b"2", job_key="k", headers={"t": "2"}), b"3"])
    shared, rest = shared_lot(jobs, None)
    assert (shared.options, shared.delay) == (JobOptions(name="n"), 5)
    assert rest == [
        NewJob(b"1", headers={"by": "me"}),
        NewJob(b"2", headers={"by": "me", "t": "2"}, job_key="k"),
        NewJob(b"3", headers={"by": "me"}),
    ]


def test_one_job_has_a_lane_of_its_own():
    """Its options decide with whom it travels, but for its headers and its group."""
    job = Outgoing("q", b"", JobOptions(name="n", headers={"a": "b"}, group="g"), job_key="k")
    bare = batch_key(options=JobOptions(name="n"))
    assert batch_key_of_one(job, None) == (bare, Own("k", headers={"a": "b"}, group="g"))


def test_a_lot_is_answered_as_one():
    """Its ids are consecutive."""
    pushed = [Pushed(id_, PushOutcome.CREATED, AckLevel.BUFFERED) for id_ in (7, 8, 9)]
    assert list(pushed_lot(pushed, have_keys=False).ids) == [7, 8, 9]


def test_a_lot_with_unique_keys_is_answered_one_by_one():
    """A key may be held: that payload stands for another job."""
    level = AckLevel.BUFFERED
    outcomes = [(3, PushOutcome.DUPLICATE), (8, PushOutcome.CREATED), (9, PushOutcome.REPLACED)]
    lot = pushed_lot([Pushed(id_, outcome, level) for id_, outcome in outcomes], have_keys=True)
    assert (lot.first_id, lot.count, list(lot.ids)) == (8, 2, [3, 8, 9])
    assert [each.duplicate for each in lot.outcomes] == [True, False, False]


def test_columns_become_the_own_options_of_jobs():
    """So that middleware sees them; without any, payloads stay plain."""
    assert jobs_beside([b"1"], None, None) == [b"1"]
    jobs = jobs_beside([b"1", b"2"], ["g", None], None)
    assert jobs == [NewJob(b"1", group="g"), b"2"]
    assert jobs_beside([b"1"], None, ["u"]) == [NewJob(b"1", unique_key="u")]
    with pytest.raises(InvalidArgument, match=r"unique_keys: must be as many as payloads, 1"):
        jobs_beside([b"1"], None, ["u", "v"])
