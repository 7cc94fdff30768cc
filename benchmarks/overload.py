"""P17: three times as many calls as the server can do.

Sustainable is four fifths of what callers that wait for their replies get done. Three times that
is offered whatever the server does, while one more caller sees how it is refused. What is accepted
must take hardly longer than before, the server must not grow, and afterwards all must be as before.

Only on native: grpcio takes and refuses hardly more calls than it serves, so there a flood waits in
the transport, up to `max_concurrent_streams` of each connection.
"""

from __future__ import annotations

import asyncio

import grpc
from google.rpc import error_details_pb2, status_pb2

from benchmarks import bodies
from benchmarks.bench import Bench, Running
from benchmarks.figures import Figure, Unit, at_most
from benchmarks.h2load import Callers, LoadFailed
from benchmarks.latency import percentiles
from benchmarks.open_loop import Connection, Offered, connect, offer

CONNECTIONS = 8
CALLERS = Callers(64)
SUSTAINABLE = 0.8
TIMES = 3
SECONDS = 60.0
NORMAL_SECONDS = 10.0
# Until all must be as before.
AFTER_SECONDS = 5.0
GROWTH_BYTES_MAX = 64 << 20
DETAILS = "grpc-status-details-bin"
ASK_SECONDS = 0.02


async def overload(bench: Bench) -> None:
    """P17: what is accepted, what is refused, and what is left."""
    long = SECONDS / 10 if bench.quick else SECONDS
    short = NORMAL_SECONDS / 5 if bench.quick else NORMAL_SECONDS
    message = bodies.plain(1)
    async with bench.server("native") as server:
        rate = SUSTAINABLE * await bench.push_rate(server, message, jobs=1, callers=CALLERS)
        connections = await connect(server.address, bodies.PUSH, message, CONNECTIONS)
        normal = await offered(server, connections, rate, short)
        size = server.process.memory_bytes()
        flood, seen = await flooded(server, connections, TIMES * rate, long)
        grown = server.process.memory_bytes() - size
        # The replies that were still to come are part of these seconds.
        await asyncio.sleep(max(0.0, AFTER_SECONDS - (flood.seconds - long)))
        after = await offered(server, connections, rate, short)
        for one in connections:
            one.close()
    if not flood.counted.refused or not seen:
        raise LoadFailed("nothing was refused: the load was no overload")
    _add(bench, rate, normal, flood, after, grown)


def _add(
    bench: Bench, rate: float, normal: Offered, flood: Offered, after: Offered, grown: int
) -> None:
    what = f"{TIMES} × {rate:,.0f} single pushes a second, native"
    usual = percentiles(normal.counted.accepted)[1]
    for name, found in (("those accepted", flood), ("five seconds later", after)):
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
    done = len(flood.counted.accepted) / flood.seconds
    refused = f"{flood.counted.refused:,} refused, {flood.kept_back:,} never sent"
    bench.add(
        Figure(
            "P17", f"{what}: done, of the usual rate", 100 * done / rate, Unit.SHARE, ratio=refused
        )
    )
    bench.add(
        Figure(
            "P17",
            f"{what}: growth, jobs included",
            grown,
            Unit.MEMORY,
            at_most(GROWTH_BYTES_MAX),
            ratio=f"{len(flood.counted.accepted):,} jobs stored",
        )
    )


async def offered(
    server: Running, connections: list[Connection], rate: float, seconds: float
) -> Offered:
    """Offers calls, all of which must have ended, and counts what was stored."""
    before = await server.arrived()
    found = await offer(connections, rate, seconds)
    stored = await server.arrived() - before
    if stored != len(found.counted.accepted):
        raise LoadFailed(f"{len(found.counted.accepted)} were accepted, and {stored} are stored")
    return found


async def flooded(
    server: Running, connections: list[Connection], rate: float, seconds: float
) -> tuple[Offered, int]:
    """Offers too many calls; returns also how often another caller was refused meanwhile."""
    asker, before = Asker(server), await server.arrived()
    asking = asyncio.create_task(asker.ask())
    found = await offer(connections, rate, seconds)
    asker.is_over = True
    await asking
    stored, accepted = await server.arrived() - before, len(found.counted.accepted) + asker.accepted
    if stored != accepted:
        raise LoadFailed(f"{accepted} were accepted, and {stored} are stored")
    return found, asker.refused


class Asker:
    """One more caller, who pushes again and again and sees how it is refused."""

    def __init__(self, server: Running) -> None:
        self._server = server
        self.accepted = self.refused = 0
        self.is_over = False

    async def ask(self) -> None:
        """Pushes until it is over."""
        message = bodies.plain(1)
        while not self.is_over:
            try:
                await self._server.wire.push(message)
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
