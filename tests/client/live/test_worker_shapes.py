"""The worker over a real socket: batch handlers, middleware, lifespan."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from jobline import AsyncClient, Dead, Middleware, Worker
from tests.client.live.tiny_store import COMPLETED, DEAD
from tests.client.live.working import working


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_batch_handler_answers_for_each_job(tiny, is_async):
    """Results, errors and outcomes one by one; what it forgets is failed, never assumed done."""
    worker = Worker(tiny.address, concurrency=2)
    sizes = []

    def handle(items):
        sizes.append(len(items))
        said = {item.id: item.payload for item in items if item.payload > 0}
        return said | {item.id: Dead("zero") for item in items if item.payload == 0}

    async def handle_async(items):
        await asyncio.sleep(0)
        return handle(items)

    # One is full, the other has waited long enough.
    for queue, wait in (("full", 3_600), ("late", 0)):
        worker.batch_handler(queue, size=3, wait=wait)(handle_async if is_async else handle)
    options = {"content_type": "application/json", "max_attempts": 1}
    tiny.push("full", b"1", b"0", b"-1", **options)
    tiny.push("late", b"4", **options)
    async with working(worker):
        await tiny.until(lambda: all(entry.has_ended for entry in tiny.jobs()))
    jobs = tiny.jobs()
    assert [entry.state for entry in jobs] == [COMPLETED, DEAD, DEAD, COMPLETED]
    assert (jobs[0].result, jobs[1].error.type, jobs[2].error.type) == (b"1", "Dead", "Forgotten")
    assert sorted(sizes) == [1, 3]


@pytest.mark.parametrize("said", [None, "text", KeyError("all"), [None], [None] * 3])
async def test_a_batch_handler_that_answers_for_nobody_fails_all(tiny, said):
    """A list in order would do as well; of one of another length nobody knows whose answers it
    has.
    """
    worker = Worker(tiny.address)

    @worker.batch_handler("q", size=2, wait=3_600)
    async def handle(items):
        if isinstance(said, Exception):
            raise said
        return said

    tiny.push("q", b"1", b"2", max_attempts=1)
    async with working(worker):
        await tiny.until(lambda: len(tiny.jobs(DEAD)) == 2)


async def test_middleware_wraps_handlers_and_the_lifespan_makes_their_state(tiny):
    """The first is outermost; the lifespan ends after the last job."""
    said = []

    class Say(Middleware):
        def __init__(self, word):
            self.word = word

        async def around(self, contexts, call_next):
            said.append(f"{self.word} {contexts[0].name}")
            return await call_next()

        def around_plain(self, contexts, call_next):
            said.append(f"{self.word} {contexts[0].name}")
            return call_next() + 1

    @asynccontextmanager
    async def lifespan():
        said.append("begin")
        yield {"answer": 42}
        said.append("end")

    worker = Worker(tiny.address, middleware=[Say("outer"), Say("inner")], lifespan=lifespan)

    @worker.handler("q", "async")
    async def handle(payload, context):
        return context.state["answer"]

    @worker.handler("q", "plain")
    def handle_plain(payload):
        return 1

    async with AsyncClient(tiny.address) as client, working(worker):
        assert await client.push_and_wait("q", b"", name="async") == 42
        assert await client.push_and_wait("q", b"", name="plain") == 3
    assert said == ["begin", "outer async", "inner async", "outer plain", "inner plain", "end"]


class Doubling(Middleware):
    """Sees the jobs of a call, and changes what was said about them."""

    def __init__(self):
        self.seen: list[list[int]] = []

    async def around(self, contexts, call_next):
        self.seen.append([context.id for context in contexts])
        return {id_: value * 2 for id_, value in (await call_next()).items()}

    def around_plain(self, contexts, call_next):
        self.seen.append([context.id for context in contexts])
        return {id_: value * 2 for id_, value in call_next().items()}


@pytest.mark.parametrize("is_async", [True, False])
async def test_middleware_wraps_a_batch_as_it_wraps_a_job(tiny, is_async):
    """Once around the call, with all of its jobs, and it may change their answers."""
    doubling = Doubling()
    worker = Worker(tiny.address, middleware=[doubling])

    def handle(items):
        return {item.id: item.payload for item in items}

    async def handle_async(items):
        return handle(items)

    function = handle_async if is_async else handle
    worker.batch_handler("q", size=2, wait=3_600, payload=int)(function)
    ids = tiny.push("q", b"1", b"2")
    async with working(worker):
        await tiny.until(lambda: len(tiny.jobs(COMPLETED)) == 2)
    assert [tiny.store.jobs[id_].result for id_ in ids] == [b"2", b"4"]
    assert doubling.seen == [ids]


@pytest.mark.parametrize("is_async", [True, False])
async def test_what_middleware_raises_fails_every_job_of_the_call(tiny, is_async):
    """A batch that is not let through costs each of its jobs an attempt, and nothing is silent."""

    class Refuse(Middleware):
        async def around(self, contexts, call_next):
            raise PermissionError

        def around_plain(self, contexts, call_next):
            raise PermissionError

    worker = Worker(tiny.address, middleware=[Refuse()])

    async def handle_async(items):
        raise AssertionError

    def handle(items):
        raise AssertionError

    worker.batch_handler("q", size=2)(handle_async if is_async else handle)
    tiny.push("q", b"1", b"2", max_attempts=1)
    async with working(worker):
        await tiny.until(lambda: len(tiny.jobs(DEAD)) == 2)
    assert {entry.error.type for entry in tiny.jobs()} == {"PermissionError"}
