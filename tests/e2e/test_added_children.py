"""Handlers that wait for children which they add: async, plain and in batches, on a real server."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from jobline import (
    AsyncClient,
    BatchItem,
    CancelReason,
    Client,
    Context,
    EndReason,
    FlowJob,
    InvalidArgument,
    JobState,
    LeaseLost,
    LeaseReason,
    Outcome,
    TooLarge,
    WaitFor,
    Worker,
)
from jobline_server.testing import RunningServer
from tests.client.live.working import working
from tests.server.conftest import until

BLOCKED, COMPLETED, DEAD = JobState.BLOCKED, JobState.COMPLETED, JobState.DEAD


async def result_of(client: AsyncClient, id_: int) -> object:
    """What a job returned, once it has ended well."""
    [end] = [end async for end in client.wait(id_, timeout=30)]
    assert end.state is COMPLETED
    return (await client.jobs.get(id_)).result_value()


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("is_raised", [True, False])
async def test_handler_waits_for_children_and_goes_on_with_their_results(
    server: RunningServer, client: AsyncClient, *, is_async: bool, is_raised: bool
) -> None:
    """Its checkpoint is there, although it was sent on the stream and the children beside it; and
    one place is enough, as its own is free.
    """
    worker = Worker(server.address, concurrency=1, threads=1)
    seen: list[tuple[LeaseReason, int, object]] = []

    @worker.handler("leaves")
    async def leaf(number: int) -> int:
        return number * 10

    def step(context: Context, numbers: list[int], results: list[int]) -> object:
        seen.append((context.reason, context.attempt, context.checkpoint_value()))
        if results:
            return sum(results)
        context.save_checkpoint({"asked": len(numbers)})
        outcome = WaitFor(*[FlowJob("leaves", number) for number in numbers])
        if is_raised:
            raise outcome
        return outcome

    async def parent_async(numbers: list[int], context: Context) -> object:
        children = await context.children_async()
        return step(context, numbers, [child.result_value(int) for child in children])

    def parent(numbers: list[int], context: Context) -> object:
        return step(context, numbers, [child.result_value(int) for child in context.children()])

    worker.handler("parents")(parent_async if is_async else parent)
    async with working(worker):
        pushed = await client.push("parents", [1, 2, 3])
        assert await result_of(client, pushed.id) == 60
    assert seen == [
        (LeaseReason.FIRST, 1, None),
        (LeaseReason.CHILDREN_ENDED, 1, {"asked": 3}),
    ]
    stats = worker.stats
    assert (stats.done, stats.released, stats.failed, stats.lost) == (4, 1, 0, 0)


async def test_jobs_of_a_batch_wait_each_for_its_own(
    server: RunningServer, client: AsyncClient
) -> None:
    worker = Worker(server.address)

    @worker.handler("leaves")
    def leaf(number: int) -> int:
        return number + 1

    @worker.batch_handler("parents", size=3, wait=0.01)
    def parents(items: list[BatchItem[int]]) -> list[object]:
        answers: list[object] = []
        for item in items:
            children = item.context.children()
            waits = WaitFor(FlowJob("leaves", item.payload))
            answers.append(children[0].result_value() if children else waits)
        return answers

    async with working(worker):
        pushed = await client.push_many("parents", [1, 2, 3])
        assert [await result_of(client, one.id) for one in pushed] == [2, 3, 4]


async def test_failing_child_ends_its_parent_by_its_policy(
    server: RunningServer, client: AsyncClient
) -> None:
    worker = Worker(server.address)

    @worker.handler("leaves")
    async def leaf(payload: object) -> None:
        raise ValueError("no")

    @worker.handler("parents")
    async def parent(payload: object, context: Context) -> object:
        children = await context.children_async()
        if children:
            return [child.state.name for child in children]
        return WaitFor(FlowJob("leaves", max_attempts=1))

    async with working(worker):
        fails = await client.push("parents", 1)
        ignores = await client.push("parents", 1, on_dependency_failure="ignore")
        [end] = [end async for end in client.wait(fails.id, timeout=30)]
        assert (end.state, end.reason) == (DEAD, EndReason.DEPENDENCY_FAILED)
        assert await result_of(client, ignores.id) == ["DEAD"]


async def test_children_that_are_refused_fail_the_attempt(
    server: RunningServer, client: AsyncClient
) -> None:
    """As anything that goes wrong in a handler does."""
    worker = Worker(server.address)

    @worker.handler("parents", "unjson")
    async def unjson(payload: object) -> object:
        return WaitFor(FlowJob("leaves", object()))

    @worker.handler("parents", "system")
    def system(payload: object) -> object:
        return WaitFor(FlowJob("_system"))

    async with working(worker):
        for name, error in (("unjson", "CodecError"), ("system", "InvalidArgument")):
            pushed = await client.push("parents", 1, name=name, max_attempts=1)
            [end] = [end async for end in client.wait(pushed.id, timeout=30)]
            assert end.state is DEAD
            job = await client.jobs.get(pushed.id)
            assert job.error is not None
            assert error in job.error.type
    assert (worker.stats.failed, worker.stats.running) == (2, 0)


async def test_cancelled_job_adds_no_children(server: RunningServer, client: AsyncClient) -> None:
    """Its cancel came while its handler ran: the children are refused, and it is CANCELLED."""
    worker = Worker(server.address)
    goes_on = threading.Event()
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    @worker.handler("parents")
    def parent(payload: object, context: Context) -> object:
        loop.call_soon_threadsafe(started.set)
        goes_on.wait(30)
        assert context.wait_cancelled(30)
        assert context.cancel_reason is CancelReason.CANCELLED
        return WaitFor(FlowJob("leaves"))

    async with working(worker):
        pushed = await client.push("parents", 1)
        await started.wait()
        await client.jobs.cancel(pushed.id)
        goes_on.set()
        [end] = [end async for end in client.wait(pushed.id, timeout=30)]
        assert end.state is JobState.CANCELLED
    assert "leaves" not in {queue.name async for queue in client.queues.list()}


async def test_worker_that_lost_its_lease_adds_nothing(
    server: RunningServer, client: AsyncClient
) -> None:
    """The outcome is dropped, as a late ack is."""
    worker = Worker(server.address)
    goes_on = threading.Event()
    started = asyncio.Event()
    loop = asyncio.get_running_loop()
    held: list[Context] = []

    @worker.handler("parents")
    def parent(payload: object, context: Context) -> object:
        held.append(context)
        loop.call_soon_threadsafe(started.set)
        goes_on.wait(30)
        return WaitFor(FlowJob("leaves"))

    async with working(worker):
        pushed = await client.push("parents", 1)
        await started.wait()
        await client.ack(held[0].job, result=b"by another")
        goes_on.set()
        await until(lambda: worker.stats.lost == 1 and worker.stats.running == 0)
    assert (await client.jobs.get(pushed.id)).state is COMPLETED
    assert "leaves" not in {queue.name async for queue in client.queues.list()}


async def test_worker_that_stops_hands_its_children_over_first(
    server: RunningServer, client: AsyncClient
) -> None:
    worker = Worker(server.address)

    @worker.handler("parents")
    async def parent(payload: object) -> object:
        worker.stop()
        return WaitFor(FlowJob("leaves"))

    async with working(worker) as serving:
        pushed = await client.push("parents", 1)
        await serving
    assert (await client.jobs.get(pushed.id)).state is BLOCKED


async def test_worker_that_stops_gives_back_a_job_whose_children_find_no_room(
    server: RunningServer, client: AsyncClient
) -> None:
    """At once, although the server asks to come again later, and handlers may run for long."""
    await client.queues.update("leaves", max_waiting=1)
    await client.push("leaves", 0)
    worker = Worker(server.address, soft_stop=600, hard_stop=600)
    refused = asyncio.Event()
    loop = asyncio.get_running_loop()

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "trying again" in record.getMessage():
                loop.call_soon_threadsafe(refused.set)

    @worker.handler("parents")
    async def parent(payload: object) -> object:
        return WaitFor(FlowJob("leaves"))

    heard = Heard()
    logging.getLogger("jobline.worker").addHandler(heard)
    try:
        async with asyncio.timeout(60), working(worker) as serving:
            pushed = await client.push("parents", 1)
            await refused.wait()
            worker.stop()
            await serving
    finally:
        logging.getLogger("jobline.worker").removeHandler(heard)
    job = await client.jobs.get(pushed.id)
    assert (job.state, job.attempts, job.releases) == (JobState.READY, 0, 1)


async def test_by_hand_on_both_clients(server: RunningServer, client: AsyncClient) -> None:
    await client.push("parents", 1)
    [job] = await client.pull("parents", wait=20)
    pushed = await client.flows.add_children(job, FlowJob("leaves", 1), FlowJob("leaves", 2))
    assert len(pushed.ids) == 2
    with pytest.raises(LeaseLost):
        await client.flows.add_children(job, FlowJob("leaves"))
    for leaf in await client.pull("leaves", max_jobs=2, wait=20):
        await client.ack(leaf, result=leaf.value())
    [again] = await client.pull("parents", wait=20)
    assert [one.result_value() for one in await client.flows.children(again.id)] == [1, 2]
    with pytest.raises(TooLarge):
        await client.flows.add_children(again, *many(999))

    def blocking() -> None:
        with Client(server.address) as own:
            ids = own.flows.add_children(again, FlowJob("leaves"), request_id="r").ids
            repeated = own.flows.add_children(again, FlowJob("leaves"), request_id="r")
            assert repeated.ids == ids

    await asyncio.to_thread(blocking)
    assert (await client.jobs.get(again.id)).state is BLOCKED
    with pytest.raises(InvalidArgument, match="at least one"):
        await client.flows.add_children(again)


def many(count: int) -> list[FlowJob]:
    return [FlowJob("leaves") for _ in range(count)]


def test_wait_for_needs_children() -> None:
    with pytest.raises(InvalidArgument, match="at least one"):
        WaitFor()
    with pytest.raises(InvalidArgument, match="children"):
        WaitFor("no")  # type: ignore[arg-type]  # refused
    assert isinstance(WaitFor(FlowJob("q")), Outcome)
