"""P12: a million keys, and nearly as many groups. A push costs what it cost when there were few, a
key or a group so many bytes.

Pushes of a thousand payloads with a column of keys go out from a few callers, in slices; the best
of the first slices stands beside the best of the last ones. The same jobs without such keys say
what of the memory is the keys'.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import NamedTuple

from benchmarks import bodies, machine
from benchmarks.bench import Bench, Running
from benchmarks.figures import Figure, Unit, at_most
from jobline import AsyncClient
from jobline.v1 import job_pb2, job_service_pb2

KEYS = 1_000_000
# Below what a server lets in, with those of the first jobs.
GROUPS = 900_000
A_CALL = 1_000
CALLERS = 4
# Slices of so many jobs; the first and the last few are compared.
SLICE = 50_000
ENDS = 4
FLAT_MIN = 0.80
# Buffers reach their size before memory is counted.
WARM_JOBS = 50_000
SETTLE_SECONDS = 1.0

Body = Callable[[range], bytes]


class Kind(NamedTuple):
    """A kind of keys: its name, a push of jobs with such keys, and how many bytes a key may take. A
    job with a unique key or a group is an object of its own, and no member of a lot; that counts,
    too. `each` is what there are `number` of; `fair` is whether its queue is.
    """

    name: str
    body: Body
    target: float
    each: str = "key"
    number: int = KEYS
    fair: bool = False


async def many_keys(bench: Bench) -> None:
    """P12: rates as keys get more, and the memory of each."""
    _, without = await _pushed(bench, Kind("none", _plain, 0))
    for kind in KINDS:
        rates, with_keys = await _pushed(bench, kind)
        first, last = max(rates[:ENDS]), max(rates[-ENDS:])
        count = bench.scaled(kind.number)
        what = f"push, {A_CALL:,} {kind.name} a call, {CALLERS} callers, the last of {count:,}"
        flat = last / first
        ratio = f"{flat:.0%} of the first (target ≥ {FLAT_MIN:.0%})"
        bench.add(Figure("P12", what, last, Unit.JOBS, ratio=ratio, ratio_met=flat >= FLAT_MIN))
        ratio = f"{with_keys / without:.1f} × a plain job with it"
        what = f"memory, {count:,} {kind.name}: of each {kind.each}"
        each = with_keys - without
        bench.add(Figure("P12", what, each, Unit.BYTES, at_most(kind.target), ratio))


async def _pushed(bench: Bench, kind: Kind) -> tuple[list[float], float]:
    """Pushes jobs; returns the rate of each slice, and the bytes of memory of each job."""
    count, body = bench.scaled(kind.number), kind.body
    async with bench.server("native", "--max-keys", str(2 * KEYS)) as server:
        if kind.fair:
            async with AsyncClient(server.address) as client:
                await client.queues.update(bodies.QUEUE, fair=True)
        await _slice(server, body, range(count, count + WARM_JOBS))
        before = await _memory(server)
        rates = [await _slice(server, body, numbers) for numbers in _slices(count)]
        return rates, (await _memory(server) - before) / count


def _slices(count: int) -> Iterator[range]:
    for first in range(0, count, SLICE):
        yield range(first, min(first + SLICE, count))


async def _slice(server: Running, body: Body, numbers: range) -> float:
    """Pushes a slice and counts what arrived; returns jobs a second."""
    before = (await server.wire.stats()).pushed_total
    calls = [body(numbers[at : at + A_CALL]) for at in range(0, len(numbers), A_CALL)]
    left = iter(calls)
    machine.touch_memory()

    async def caller() -> None:
        for message in left:
            await server.wire.push(message)

    began = perf_counter()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    seconds = perf_counter() - began
    await server.wire.expect_pushed(before, len(numbers))
    return len(numbers) / seconds


async def _memory(server: Running) -> int:
    await asyncio.sleep(SETTLE_SECONDS)
    return server.process.memory_bytes()


def _request(numbers: range) -> job_service_pb2.PushRequest:
    return job_service_pb2.PushRequest(queue=bodies.QUEUE, payloads=[bodies.PAYLOAD] * len(numbers))


def _keys(numbers: range) -> list[str]:
    return [f"user-{number:012}" for number in numbers]


def _plain(numbers: range) -> bytes:
    return _request(numbers).SerializeToString()


def _with_job_keys(numbers: range) -> bytes:
    request = _request(numbers)
    request.job_keys.extend(_keys(numbers))
    return request.SerializeToString()


def _with_unique_keys(numbers: range) -> bytes:
    request = _request(numbers)
    request.unique_keys.extend(_keys(numbers))
    return request.SerializeToString()


def _grouped(numbers: range) -> bytes:
    request = _request(numbers)
    request.groups.extend([f"group-{number:012}" for number in numbers])
    return request.SerializeToString()


def _throttled(numbers: range) -> bytes:
    request = _request(numbers)
    request.unique_keys.extend(_keys(numbers))
    request.options.unique_mode = job_pb2.UNIQUE_MODE_THROTTLE
    request.options.unique_ttl.FromSeconds(86_400)
    return request.SerializeToString()


KINDS = (
    Kind("job keys", _with_job_keys, 350),
    Kind("unique keys", _with_unique_keys, 850),
    Kind("throttled unique keys", _throttled, 1_100),
    Kind("groups", _grouped, 1_000, "group", GROUPS),
    Kind("tenants", _grouped, 3_000, "tenant", GROUPS, fair=True),
)
