"""Jobs arrive as they were pushed: gathered, cut and split as it may be, in columns or in rows."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jobline import IdempotencyMismatch, InvalidArgument, JobOptions, NewJob, Pushed
from jobline._push.answers import answers_of_batch, pushed_of
from jobline._push.batch import Own
from jobline._push.batching import BatchLimits, PushBatcher
from jobline._push.columns import options_and_own
from jobline._push.messages import BatchKey, batch_key_of, built, request_of_jobs
from jobline._push.refusals import handle_error
from jobline.errors import ErrorFacts
from tests.client.live.tiny_store import Store
from tests.client.pure.test_pushing import batch_key

HEADERS = st.dictionaries(st.sampled_from("xyz"), st.sampled_from(["", "1", "2"]), max_size=2)
SINGLE = st.tuples(
    st.sampled_from([b"1", b"2", b"bad"]),
    st.sampled_from([None, JobOptions(priority=1), JobOptions(name="n", headers={"x": "0"})]),
    st.none() | HEADERS,
    st.sampled_from(["", "", "k", "l"]),
)


class Pushing:
    """Pushes like a pusher without a wire, on a store that refuses bad payloads."""

    def __init__(self) -> None:
        numbers = itertools.count(1)
        self.store = Store()
        self.answers: dict[int, Any] = {}
        self.batcher: PushBatcher[BatchKey, int] = PushBatcher(
            BatchLimits(batch_jobs=5),
            request_ids=lambda: f"r{next(numbers)}",
            over=lambda _id, _known: None,
            chance=lambda: 0.5,
        )

    def add(self, number, payload, options, headers, job_key):
        keywords: Any = {} if headers is None else {"headers": headers}
        rest, apart, _ = options_and_own(options, keywords, "push")
        self.batcher.add(0.0, batch_key(options=rest), payload, number, Own(job_key, headers=apart))

    def send_all(self):
        while batches := self.batcher.batches_to_send(0.0):
            for flying in batches:
                self._send(flying)

    def _send(self, flying):
        request = built(flying)
        payloads = [*request.payloads, *(job.data for job in request.jobs)]
        if b"bad" in payloads:
            error = InvalidArgument("bad", ErrorFacts(fields={"payloads[0]": "bad"}))
            if handle_error(self.batcher, 0.0, flying, error):
                self.answers.update(dict.fromkeys(flying.waiters, error))
            return
        answers = answers_of_batch(self.store.push(request), flying)
        self.batcher.handle_done(flying)
        self.answers.update(zip(flying.waiters, answers, strict=True))


@given(st.lists(SINGLE, max_size=12))
def test_every_job_arrives_with_what_it_had_of_its_own(pushes):
    """Gathered, cut and split as it may be: headers and options as its caller gave them, one job
    for a key, and each caller told of its own job.
    """
    pushing = Pushing()
    for number, push in enumerate(pushes):
        pushing.add(number, *push)
    pushing.send_all()
    created = []
    for number, (payload, options, headers, job_key) in enumerate(pushes):
        answer = pushing.answers[number]
        if payload == b"bad":
            assert isinstance(answer, InvalidArgument)
            continue
        if isinstance(answer, IdempotencyMismatch):
            assert job_key in str(answer)
            continue
        assert isinstance(answer, Pushed)
        job = pushing.store.jobs[answer.id]
        assert (job.payload, job.job_key) == (payload, job_key)
        if answer.created:
            created.append(answer.id)
            meant = (options or JobOptions()).merged(JobOptions(headers=headers))
            assert JobOptions.from_message(job.options) == meant.replaced(
                headers=meant.headers or None
            )
    assert sorted(created) == sorted(pushing.store.jobs)
    keys = [job.job_key for job in pushing.store.jobs.values() if job.job_key]
    assert len(keys) == len(set(keys))


MANY = st.builds(
    NewJob,
    st.sampled_from([b"1", b"2", {"a": 1}]),
    options=st.sampled_from([None, None, JobOptions(), JobOptions(priority=1, headers={"y": "9"})]),
    headers=st.none() | HEADERS,
    job_key=st.sampled_from([None, None, "k", "l"]),
    delay=st.sampled_from([None, None, None, 1]),
)


@given(st.lists(MANY | st.just(b"plain"), min_size=1, max_size=6), HEADERS)
def test_many_jobs_arrive_in_columns_as_in_rows(jobs, shared):
    """The form of the request changes neither jobs nor answers."""
    how: Any = {"headers": shared, "name": "n"}
    arrived = []
    for in_rows in (False, True):
        store = Store()
        request = request_of_jobs(
            batch_key_of("q", how), jobs, atomic=False, request_id=None, in_rows=in_rows
        )
        answers = pushed_of(store.push(request), len(jobs))
        found = [(job.payload, job.job_key, job.options) for job in store.jobs.values()]
        arrived.append((answers, found))
    assert arrived[0] == arrived[1]
