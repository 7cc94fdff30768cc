"""Fills a server with as many jobs of each kind as are asked for: a queue for each kind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import descriptor_pool
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from benchmarks import bodies
from benchmarks.bench import Running
from benchmarks.drains import acked, leases_of
from benchmarks.h2load import LoadFailed
from jobline.v1 import batch_service_pb2, job_service_pb2, queue_service_pb2

# Loads the descriptors of every service.
from jobline_server.rpc import services  # noqa: F401

PACKAGE = "jobline.v1"
BATCH = 1_000
CALLERS = 8
GROUPS = 1_000
# Of the jobs that may wait for one: engine/limits.py says 200,000.
CHILDREN_MAX = 100_000
SECONDS_MAX = 900.0

READY, OWN, LATER, GROUPED = "ready", "own", "later", "grouped"
BLOCKED, BATCHED, DONE, DEAD, EXPIRED = "blocked", "batched", "done", "dead", "expired"
PARENTS, KEY = "parents", "known"
LIVE = (READY, OWN, LATER, GROUPED, BLOCKED, BATCHED)
ENDED = (DONE, DEAD, EXPIRED)
KINDS = (*LIVE, *ENDED)
# What each kind is, in the words of the figures.
WORDS = {
    READY: "in lots",
    OWN: "with options of their own",
    LATER: "scheduled",
    GROUPED: f"in {GROUPS:,} groups",
    BLOCKED: "blocked",
    BATCHED: "in one batch",
    DONE: "completed",
    DEAD: "dead",
    EXPIRED: "expired to dead",
}


@dataclass(slots=True)
class World:
    """A server that is filled. `ids` has the first ids of each push of a queue, with their numbers;
    `operations` the ids of the operations of calls, by call.
    """

    server: Running
    channel: Any
    jobs: int
    ids: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    batch_id: int = 0
    operations: dict[str, str] = field(default_factory=dict)

    def first(self, queue: str) -> str:
        """Returns the id of the first job of a queue."""
        return str(self.ids[queue][0][0])

    def last(self, queue: str) -> str:
        """Returns the id of the last job of a queue."""
        first_id, count = self.ids[queue][-1]
        return str(first_id + count - 1)

    def some(self, queue: str, count: int) -> list[str]:
        """Returns ids that are spread over the jobs of a queue."""
        runs = self.ids[queue]
        each = -(-count // len(runs))
        found = [str(first + at) for first, number in runs for at in range(min(each, number))]
        return found[:count]

    async def call(self, rpc: str, fields: dict[str, Any]) -> Any:
        """Calls an RPC, asked in protobuf JSON; returns the reply, the first one of a stream."""
        service, name = f"{PACKAGE}.{rpc}".split("/")
        method = descriptor_pool.Default().FindServiceByName(service).methods_by_name[name]
        request: Message = ParseDict(fields, GetMessageClass(method.input_type)())
        path, raw = f"/{PACKAGE}.{rpc}", request.SerializeToString()
        if method.server_streaming:
            async for reply in self.channel.unary_stream(path)(raw, timeout=SECONDS_MAX):
                return reply
            return None
        reply = await self.channel.unary_unary(path)(raw, timeout=SECONDS_MAX)
        return GetMessageClass(method.output_type).FromString(reply)


async def fill(world: World) -> None:
    """Makes the jobs of every kind."""
    for queue in ENDED:
        # By itself a queue keeps 100,000 completed jobs.
        settings: dict[str, Any] = {"retention": {"count": str(world.jobs)}}
        if queue == EXPIRED:
            settings |= {"ttl": "1s", "expiredToDead": True}
        mask = ",".join(settings)
        update = {"queue": queue, "settings": settings, "updateMask": mask}
        await world.call("QueueService/UpdateQueue", update)
    for fill_one in (_lots, _own, _later, _grouped, _blocked, _batched, _expired, _done, _dead):
        await fill_one(world)
    await _until_expired(world)


async def _push(
    world: World,
    queue: str,
    change: Callable[[job_service_pb2.PushRequest, int], None] = lambda _request, _number: None,
    *,
    jobs: int = 0,
) -> None:
    """Pushes jobs to a queue, in calls that `change` makes different."""
    numbers: Iterator[int] = iter(range((jobs or world.jobs) // BATCH))
    kept = world.ids.setdefault(queue, [])

    async def caller() -> None:
        for number in numbers:
            request = job_service_pb2.PushRequest(queue=queue)
            change(request, number)
            if not request.jobs:
                request.payloads.extend([bodies.PAYLOAD] * BATCH)
            reply = await world.server.wire.push_checked(request.SerializeToString())
            kept.append((reply.first_id, BATCH))

    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    if sum(count for _, count in kept) < world.jobs and queue != PARENTS:
        raise LoadFailed(f"{queue} does not have {world.jobs} jobs")


async def _lots(world: World) -> None:
    await _push(world, READY)


async def _own(world: World) -> None:
    def change(request: job_service_pb2.PushRequest, _number: int) -> None:
        request.MergeFromString(bodies.rows(BATCH, OWN))

    await _push(world, OWN, change)


async def _later(world: World) -> None:
    def change(request: job_service_pb2.PushRequest, _number: int) -> None:
        request.delay.FromSeconds(86_400)

    await _push(world, LATER, change)


async def _grouped(world: World) -> None:
    names = [f"g{number}" for number in range(BATCH)]

    def change(request: job_service_pb2.PushRequest, _number: int) -> None:
        request.groups.extend(names)

    await _push(world, GROUPED, change)


async def _blocked(world: World) -> None:
    await _push(world, PARENTS, jobs=BATCH)
    keyed = {"queue": PARENTS, "payloads": ["YQ=="], "jobKeys": [KEY]}
    await world.call("JobService/Push", keyed)
    first, _ = world.ids[PARENTS][0]

    def change(request: job_service_pb2.PushRequest, number: int) -> None:
        request.options.depends_on.append(first + number * BATCH // CHILDREN_MAX)

    await _push(world, BLOCKED, change)


async def _batched(world: World) -> None:
    reply: batch_service_pb2.CreateBatchResponse = await world.call(
        "BatchService/CreateBatch",
        {"name": BATCHED, "onComplete": {"queue": PARENTS, "text": "x"}},
    )
    world.batch_id = reply.batch.id

    def change(request: job_service_pb2.PushRequest, _number: int) -> None:
        request.options.batch_id = world.batch_id

    await _push(world, BATCHED, change)


async def _expired(world: World) -> None:
    await _push(world, EXPIRED)


async def _done(world: World) -> None:
    async def ack(ids: list[int], deliveries: list[int]) -> None:
        await acked(world.server.wire, ids, deliveries)

    await _push(world, DONE)
    await _take_all(world, DONE, ack)


async def _dead(world: World) -> None:
    async def fail(ids: list[int], deliveries: list[int]) -> None:
        request = job_service_pb2.FailRequest()
        for job_id, delivery in zip(ids, deliveries, strict=True):
            item = request.items.add(id=job_id, delivery=delivery)
            item.then = job_service_pb2.FAIL_ACTION_DEAD
            item.error.type, item.error.message = "Boom", "it broke"
        await world.channel.unary_unary("/jobline.v1.JobService/Fail")(request.SerializeToString())

    await _push(world, DEAD)
    await _take_all(world, DEAD, fail)


async def _take_all(
    world: World, queue: str, settle: Callable[[list[int], list[int]], Awaitable[None]]
) -> None:
    request = bodies.pull(BATCH, runs=True, queue=queue)

    async def caller() -> None:
        while True:
            raw = await world.server.wire.pull(request)
            ids, deliveries = leases_of(job_service_pb2.PullResponse.FromString(raw))
            if not ids:
                return
            await settle(ids, deliveries)

    await asyncio.gather(*(caller() for _ in range(4)))


async def _until_expired(world: World) -> None:
    """Waits until all jobs of a kind have expired, and shows that the others are as they must."""
    states = {BLOCKED: "blocked", LATER: "scheduled", DONE: "completed", DEAD: "dead"}
    async with asyncio.timeout(300):
        while await _count(world, EXPIRED, "dead") < world.jobs:  # noqa: ASYNC110  # no signal
            await asyncio.sleep(0.2)
    for queue in KINDS[:-1]:
        state = states.get(queue, "ready")
        found = await _count(world, queue, state)
        if found != world.jobs:
            raise LoadFailed(f"{queue} has {found} jobs that are {state}")


async def _count(world: World, queue: str, state: str) -> int:
    reply: queue_service_pb2.GetQueueResponse = await world.call(
        "QueueService/GetQueue", {"queue": queue}
    )
    return int(getattr(reply.queue.counts, state))
