"""Pieces of results over a real server: restarts, and callers that are late or slow."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from jobline import (
    AsyncClient,
    Client,
    EventKind,
    InvalidArgument,
    JobNotFound,
    JobState,
    Partial,
    WaitTimeout,
    Worker,
)
from jobline.v1 import job_service_pb2 as pb
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import RunningServer, running_server
from tests.client.live.working import working


def values(pieces: list[Partial]) -> list[object]:
    return [piece.value() for piece in pieces]


async def read(client: AsyncClient, job_id: int) -> list[Partial]:
    return [piece async for piece in client.partials(job_id, timeout=30)]


async def test_pieces_come_as_they_are_made_and_end_with_the_job(client: AsyncClient) -> None:
    """To several callers, of both clients; who comes later gets what came before."""
    worker, half, go = Worker(client.target), asyncio.Event(), asyncio.Event()

    @worker.handler("answers")
    async def talk(words: list[str], context) -> str:
        for word in words[:2]:
            context.partial(word)
        half.set()
        await go.wait()
        for word in words[2:]:
            context.partial(word)
        return " ".join(words)

    words = ["one", "two", "three", "four"]
    async with working(worker):
        pushed = await client.push("answers", words)
        early = client.partials(pushed.id)
        assert (await anext(early)).value() == "one"
        await half.wait()
        late = client.partials(pushed.id)
        with Client(client.target) as blocking:
            plain = blocking.partials(pushed.id)
            first = await asyncio.to_thread(next, plain)
            assert values([await anext(late), await anext(early), first]) == ["one", "two", "one"]
            go.set()
            assert values([piece async for piece in early]) == words[2:]
            assert values([piece async for piece in late]) == words[1:]
            rest = await asyncio.to_thread(list, plain)
        assert values(rest) == words[1:]
        numbers = [piece.number for piece in [first, *rest]]
        assert numbers == list(range(numbers[0], numbers[0] + 4))
        assert (await client.wait_one(pushed.id)).value() == "one two three four"
        assert await read(client, pushed.id) == []


async def test_a_watch_of_the_job_gives_its_pieces_before_its_end(client: AsyncClient) -> None:
    """To those who name the kind, and one job."""
    worker, go = Worker(client.target), asyncio.Event()

    @worker.handler("answers")
    async def talk(words: list[str], context) -> None:
        context.partial(words[0])
        await go.wait()
        context.partial(words[1])

    with pytest.raises(InvalidArgument, match="PARTIAL needs a job_id"):
        await anext(client.watch(kinds=["partial"]))
    pushed = await client.push("answers", ["one", "two"])
    seen = []
    async with working(worker):
        async for event, _ in client.watch(job_id=pushed.id, kinds=["partial", "completed"]):
            seen.append(event)
            go.set()
            if event.kind is EventKind.COMPLETED:
                break
    assert [event.kind.name for event in seen] == ["PARTIAL", "PARTIAL", "COMPLETED"]
    assert [event.partial for event in seen] == [b'"one"', b'"two"', b""]
    assert seen[1].partial_number == seen[0].partial_number + 1
    assert {event.job_id for event in seen} == {pushed.id}
    assert len({event.delivery for event in seen}) == 1


async def test_attempt_that_begins_anew_has_another_delivery(client: AsyncClient) -> None:
    worker = Worker(client.target)

    @worker.handler("answers")
    async def talk(_payload: bytes, context) -> None:
        context.partial(f"try {context.attempt}")
        if context.attempt == 1:
            raise ValueError("odd")
        context.partial("good")

    async with working(worker):
        pushed = await client.push("answers", backoff=None, max_attempts=2)
        reading = client.partials(pushed.id)
        pieces = [await anext(reading)]
        while (await client.jobs.get(pushed.id)).attempts == 0:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        await client.jobs.promote(pushed.id)
        pieces += [piece async for piece in reading]
    assert values(pieces) == ["try 1", "try 2", "good"]
    assert pieces[0].delivery < pieces[1].delivery == pieces[2].delivery


async def test_pieces_by_hand_and_of_a_lost_lease(
    client: AsyncClient, server: RunningServer
) -> None:
    """`Extend` takes them; a lease that is lost is told so, and its piece reaches nobody."""
    pushed = await client.push("answers")
    (job,) = await client.pull("answers")
    extend = client._connection.jobs.Extend
    item = pb.ExtendItem(id=job.id, delivery=job.delivery, partial=b"mine")
    assert not (await extend(pb.ExtendRequest(items=[item]))).exceptions
    await client.release(job)
    (again,) = await client.pull("answers")
    (lost,) = (await extend(pb.ExtendRequest(items=[item]))).exceptions
    assert lost.outcome == pb.SETTLE_OUTCOME_LEASE_LOST
    newer = pb.ExtendItem(id=job.id, delivery=again.delivery, partial=b"newer")
    await extend(pb.ExtendRequest(items=[newer]))
    pieces = client.partials(pushed.id)
    assert (await anext(pieces)).data == b"newer"
    await client.ack(again)
    assert [piece async for piece in pieces] == []


async def test_who_reads_nothing_holds_up_nobody(client: AsyncClient) -> None:
    """A call that is never read; the worker sends 4 MiB, of which the last one is kept."""
    pushed = await client.push("answers")
    request = pb.WaitRequest(ids=[pushed.id], partials=True)
    request.timeout.FromSeconds(60)
    silent = client._connection.jobs.Wait(request)
    worker = Worker(client.target)

    @worker.handler("answers")
    async def talk(_payload: bytes, context) -> str:
        for number in range(64):
            context.partial(bytes([number]) * 65_536)
            await asyncio.sleep(0)
        return "done"

    async with working(worker):
        assert (await client.wait_one(pushed.id, timeout=20)).value() == "done"
    silent.cancel()


async def test_wait_without_pieces_gets_none(client: AsyncClient) -> None:
    """Earlier clients know nothing of them."""
    pushed = await client.push("answers")
    (job,) = await client.pull("answers")
    item = pb.ExtendItem(id=job.id, delivery=job.delivery, partial=b"x")
    await client._connection.jobs.Extend(pb.ExtendRequest(items=[item]))
    waiting = asyncio.create_task(client.wait_one(pushed.id))
    await asyncio.sleep(0.05)
    await client.ack(job)
    assert (await waiting).state is JobState.COMPLETED


async def test_job_that_is_unknown_or_takes_longer(client: AsyncClient) -> None:
    pushed = await client.push("answers")
    with pytest.raises(WaitTimeout):
        _ = [piece async for piece in client.partials(pushed.id, timeout=0.1)]
    with pytest.raises(JobNotFound):
        _ = [piece async for piece in client.partials(pushed.id + 1)]


async def test_caller_and_worker_outlive_the_server(tmp_path: Path) -> None:
    """What was sent before is gone with the process; what comes then is read on, under the same
    delivery."""
    clock = ManualClock()
    go, read_on = asyncio.Event(), asyncio.Event()
    async with running_server(tmp_path, clock=clock) as server:
        address, worker = server.address, Worker(server.address)

        @worker.handler("answers")
        async def talk(_payload: bytes, context) -> None:
            context.partial("before")
            await go.wait()
            while not read_on.is_set():
                context.partial("after")
                await asyncio.sleep(0.05)

        serving = asyncio.create_task(worker.serve())
        client = AsyncClient(server.address)
        pushed = await client.push("answers")
        pieces = client.partials(pushed.id)
        first = await anext(pieces)
        assert first.value() == "before"
    async with running_server(tmp_path, clock=clock, listen=address):
        while not worker.stats.connected:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        go.set()
        second = await anext(pieces)
        assert (second.value(), second.delivery) == ("after", first.delivery)
        assert second.number > first.number + 1
        read_on.set()
        assert {*values([piece async for piece in pieces])} <= {"after"}
        worker.stop()
        await serving
        await client.close()
