"""P17: three times as many calls as the server can do.

Sustainable is three fifths of what callers that wait for their replies get done on the connections
that carry the load, in a time that has checkpoints: in a second without one it may be twice that.
The rest is for minutes in which the machine is slower. What is usual is measured for as long as the
overload, or until enough is stored for some checkpoints. Three times that is offered whatever the
server does, while one more caller sees how it is refused. What is accepted must take hardly longer
than usual, the server must not grow, and afterwards all must be as usual.

What is sustainable, what is usual and the overload have a server of their own each: where one keeps
ten million jobs more than another, it would be measured how the machine finds memory for them. For
the same reason payloads are small, as those of jobs that name what to work on: it is calls that are
too many, and some guests get memory from their host a page at a time.

A refusal costs the transport what any call costs it. So there are two loads: calls of many jobs,
most of whose cost is spared where they are refused, and of one, where it is not.

Calls beyond those that a connection may have open wait in the client, and are counted as never
sent. By TLS, too. Only on native: grpcio takes and refuses hardly more calls than it serves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc
from google.rpc import error_details_pb2, status_pb2

from benchmarks import bodies
from benchmarks.bench import Bench, Running, post_counted
from benchmarks.certificates import Certificate, make_certificate
from benchmarks.figures import Figure, Unit, at_most
from benchmarks.h2load import Callers, LoadFailed
from benchmarks.latency import percentiles
from benchmarks.open_loop import Connection, Offered, connect, offer

# Jobs of each call, and their payload.
A_CALL = (100, 1)
PAYLOAD = bodies.PAYLOAD[:10]
CONNECTIONS = 8
WARM_RATE = 100.0
CALLERS = Callers(CONNECTIONS, 64 // CONNECTIONS)
SUSTAINABLE = 3 / 5
TIMES = 3
SECONDS = 60.0
# When all must be as usual. That is looked at for as long as what is usual was.
AFTER_SECONDS = 5.0
# A part without an overload stores so many jobs at most, which is three or four checkpoints.
STORED_MAX = 10_000_000
# Of the server, beside what the jobs take that are stored meanwhile (P9). In an overload it grows
# by the calls that are open, which are bounded, and must be flat from then on: after this share.
FLAT_AFTER = 1 / 6
GROWTH_BYTES_MAX = 64 << 20
JOB_BYTES_MAX = 100 + len(PAYLOAD)
# Of a hundred calls at the usual rate.
REFUSED_MAX = 1.0
DETAILS = "grpc-status-details-bin"
ASK_SECONDS = 0.02


async def overload(bench: Bench) -> None:
    """P17: what is accepted, what is refused, and what is left."""
    certificates = [None] if bench.quick else [None, make_certificate(bench.directory)]
    for certificate in certificates:
        for jobs in A_CALL:
            await _overload(bench, jobs, certificate)


async def _overload(bench: Bench, jobs: int, certificate: Certificate | None) -> None:
    long = SECONDS / 10 if bench.quick else SECONDS
    async with bench.server("native", certificate=certificate) as server:
        rate = SUSTAINABLE * await _capacity(bench, server, jobs, long / 2)
    usually = min(long, STORED_MAX / jobs / rate)
    async with _loaded(bench, jobs, certificate) as load:
        normal = await load.offer(rate, usually)
    async with _loaded(bench, jobs, certificate) as load:
        process = load.server.process
        before = process.memory_bytes()
        flood, size = await load.flood(TIMES * rate, long)
        grown = process.memory_bytes() - size
        # The replies that were still to come are part of these seconds.
        await asyncio.sleep(max(0.0, AFTER_SECONDS - (flood.seconds - long)))
        after = await load.offer(rate, usually)
    calls = "single pushes" if jobs == 1 else f"pushes of {jobs} jobs"
    by = "native" if certificate is None else "native by TLS"
    what = f"{TIMES} × {rate:,.0f} {calls} a second, {by}"
    _add_times(bench, what, normal, (("those accepted", flood), ("five seconds later", after)))
    refused_before = f"{_refused_share(normal):.1f} % before"
    later, bound = f"{what}, five seconds later: refused", at_most(REFUSED_MAX)
    bench.add(Figure("P17", later, _refused_share(after), Unit.SHARE, bound, refused_before))
    done = len(flood.counted.accepted) / flood.seconds
    refused = f"{flood.counted.refused:,} refused, {flood.kept_back:,} never sent"
    share = 100 * done / rate
    bench.add(Figure("P17", f"{what}: done, of the usual rate", share, Unit.SHARE, ratio=refused))
    stored = len(flood.counted.accepted) * jobs
    what = f"{what}: growth after the first {long * FLAT_AFTER:.0f} seconds, jobs included"
    target = at_most(GROWTH_BYTES_MAX + round(JOB_BYTES_MAX * stored * (1 - FLAT_AFTER)))
    ratio = f"{stored:,} jobs stored in all; before, {(size - before) / (1 << 20):,.0f} MiB"
    bench.add(Figure("P17", what, grown, Unit.MEMORY, target, ratio))


@asynccontextmanager
async def _loaded(bench: Bench, jobs: int, certificate: Certificate | None) -> AsyncIterator[Load]:
    """A server and the connections to it, warm: each has carried a few calls."""
    message, context = _message(jobs), certificate.context if certificate else None
    async with bench.server("native", certificate=certificate) as server:
        connections = await connect(server.address, bodies.PUSH, message, CONNECTIONS, context)
        load = Load(server, connections, message, jobs)
        await load.offer(WARM_RATE, 1.0)
        yield load
        for one in connections:
            one.close()


def _message(jobs: int) -> bytes:
    return bodies.plain(jobs, payload=PAYLOAD)


async def _capacity(bench: Bench, server: Running, jobs: int, seconds: float) -> float:
    """Returns the calls a second of callers that wait for their replies, for so long or longer."""
    message = _message(jobs)
    best = await bench.push_rate(server, message, jobs=jobs, callers=CALLERS) / jobs
    calls = round(best * seconds)
    return await post_counted(server, message, jobs=jobs, calls=calls, callers=CALLERS)


def _refused_share(offered: Offered) -> float:
    return 100 * offered.counted.refused / offered.calls


def _add_times(
    bench: Bench, what: str, normal: Offered, others: Iterable[tuple[str, Offered]]
) -> None:
    usual = percentiles(normal.counted.accepted)[1]
    for name, found in others:
        p50, p99 = percentiles(found.counted.accepted)
        late = percentiles(found.late)[1]
        bench.add(
            Figure(
                "P17",
                f"{what}, {name}: p99",
                p99,
                Unit.TIME,
                ratio=f"{p99 / usual:.1f} × the usual p99 ({usual * 1e3:.1f} ms) (target ≤ 2 ×)",
                ratio_met=p99 <= 2 * usual,
                note=f"p50 {p50 * 1e3:.1f} ms; the load was late by {late * 1e3:.1f} ms (p99)",
            )
        )


@dataclass(frozen=True, slots=True)
class Load:
    """Connections to a server, and what is pushed by each call: so many jobs."""

    server: Running
    connections: list[Connection]
    message: bytes
    jobs: int

    async def offer(self, rate: float, seconds: float) -> Offered:
        """Offers calls, all of which must have ended, and counts what was stored."""
        before = await self.server.arrived()
        found = await offer(self.connections, rate, seconds)
        await self._expect_stored(before, len(found.counted.accepted))
        return found

    async def flood(self, rate: float, seconds: float) -> tuple[Offered, int]:
        """Offers too many calls, while another caller must be refused, too; returns also the
        server's memory once it must be flat.
        """
        asker, before = Asker(self.server, self.message), await self.server.arrived()
        asking = asyncio.create_task(asker.ask())
        offering = asyncio.create_task(offer(self.connections, rate, seconds))
        await asyncio.sleep(seconds * FLAT_AFTER)
        size = self.server.process.memory_bytes()
        found = await offering
        asker.is_over = True
        await asking
        if not found.counted.refused or not asker.refused:
            raise LoadFailed("nothing was refused: the load was no overload")
        await self._expect_stored(before, len(found.counted.accepted) + asker.accepted)
        return found, size

    async def _expect_stored(self, before: int, accepted: int) -> None:
        stored = await self.server.arrived() - before
        if stored != accepted * self.jobs:
            raise LoadFailed(f"{accepted} were accepted, and {stored} jobs are stored")


class Asker:
    """One more caller, who pushes again and again and sees how it is refused."""

    def __init__(self, server: Running, message: bytes) -> None:
        self._server = server
        self._message = message
        self.accepted = self.refused = 0
        self.is_over = False

    async def ask(self) -> None:
        """Pushes until it is over."""
        while not self.is_over:
            try:
                await self._server.wire.push(self._message)
                self.accepted += 1
            except grpc.aio.AioRpcError as error:
                check_refusal(error)
                self.refused += 1
            await asyncio.sleep(ASK_SECONDS)


def check_refusal(error: grpc.aio.AioRpcError) -> None:
    """Fails unless a call was refused with a definite code that says when to come again."""
    status = status_pb2.Status.FromString(dict(error.trailing_metadata() or ()).get(DETAILS, b""))
    retry = error_details_pb2.RetryInfo()
    is_told = any(detail.Unpack(retry) for detail in status.details)
    if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED or not is_told:
        raise LoadFailed(f"refused with {error.code().name}: {error.details()}")
