"""What jobs have of their own travels in columns beside their payloads: headers and job keys."""

from __future__ import annotations

import pytest

from jobline import Middleware, Worker
from jobline.v1 import job_service_pb2 as pb
from tests.client.live.tiny_store import COMPLETED
from tests.client.live.working import working


class Traces(Middleware):
    """Notes the trace and the key of each job, as a middleware for tracing takes up the trace."""

    def __init__(self):
        self.seen = {}

    def _note(self, contexts):
        for context in contexts:
            self.seen[context.job.payload] = (context.headers, context.job_key)

    async def around(self, contexts, call_next):
        self._note(contexts)
        return await call_next()

    def around_plain(self, contexts, call_next):
        self._note(contexts)
        return call_next()


def add_handler(worker, how):
    if how == "async":

        @worker.handler("q")
        async def handle(payload):
            return None
    elif how == "plain":

        @worker.handler("q")
        def handle_plain(payload):
            return None
    else:

        @worker.batch_handler("q", size=3, wait=5)
        def handle_all(items):
            return [None] * len(items)


@pytest.mark.parametrize("how", ["async", "plain", "batch"])
async def test_a_worker_finds_what_each_job_of_a_run_has_of_its_own(tiny, how):
    """Middleware reads headers and key of each job, however its handler is called."""
    request = pb.PushRequest(queue="q", payloads=[b"0", b"1", b"2"], job_keys=["k", "", "l"])
    request.options.headers["tenant"] = "t"
    request.header_columns.add(key="trace", values=["a", "b", ""])
    tiny.store.push(request)
    traces = Traces()
    worker = Worker(tiny.address, middleware=[traces])
    add_handler(worker, how)
    async with working(worker):
        await tiny.until(lambda: len(tiny.jobs(COMPLETED)) == 3)
    assert traces.seen == {
        b"0": ({"tenant": "t", "trace": "a"}, "k"),
        b"1": ({"tenant": "t", "trace": "b"}, ""),
        b"2": ({"tenant": "t"}, "l"),
    }
