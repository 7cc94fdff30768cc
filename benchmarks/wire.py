"""The bare wire: calls and streams of prepared bytes from Python, and the questions that count.

No stub, no message of ours on the way out: the less the load costs, the more of the measured time
is the server's.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Self

import grpc
from grpc import aio

from benchmarks import bodies
from benchmarks.empty import COUNT
from benchmarks.h2load import LoadFailed
from jobline.v1 import (
    admin_service_pb2,
    job_service_pb2,
)

STATS = "/jobline.v1.AdminService/GetStats"
BACKUP = "/jobline.v1.AdminService/Backup"
GET_BACKUP = "/jobline.v1.AdminService/GetBackup"

OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # Each wire has a connection of its own.
    ("grpc.use_local_subchannel_pool", 1),
]


class Wire:
    """One connection."""

    def __init__(self, address: str, credentials: grpc.ChannelCredentials | None = None) -> None:
        if credentials is None:
            self._channel = aio.insecure_channel(address, options=OPTIONS)
        else:
            self._channel = aio.secure_channel(address, credentials, options=OPTIONS)
        self.push = self._unary(bodies.PUSH)
        self.pull = self._unary(bodies.PULL)
        self.ack = self._unary(bodies.ACK)
        self.stream: Any = self._channel.stream_stream(bodies.STREAM)
        self.watch: Any = self._channel.unary_stream(bodies.WATCH)
        self._stats = self._unary(STATS)
        self._backup = self._unary(BACKUP)
        self._backups = self._unary(GET_BACKUP)
        self._count = self._unary(COUNT)

    def _unary(self, path: str) -> Any:
        return self._channel.unary_unary(path)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends its calls."""
        await self._channel.close()

    async def stats(self) -> admin_service_pb2.GetStatsResponse:
        """What the server says of itself."""
        raw = await self._stats(b"")
        return admin_service_pb2.GetStatsResponse.FromString(raw)

    async def backup(self) -> admin_service_pb2.BackupResponse:
        """Begins a backup."""
        return admin_service_pb2.BackupResponse.FromString(await self._backup(b""))

    async def backups(self) -> admin_service_pb2.GetBackupResponse:
        """How far it is."""
        return admin_service_pb2.GetBackupResponse.FromString(await self._backups(b""))

    async def empty_calls(self) -> int:
        """How many calls came to an empty handler."""
        return int(await self._count(b""))

    async def push_checked(self, message: bytes) -> job_service_pb2.PushResponse:
        """One push."""
        return job_service_pb2.PushResponse.FromString(await self.push(message))

    async def fill(self, count: int, *, queue: str = bodies.QUEUE, a_call: int = 10_000) -> None:
        """Pushes plain jobs as fast as may be, and checks that they are there."""
        before = (await self.stats()).pushed_total
        whole, rest = divmod(count, a_call)
        message = bodies.plain(a_call, queue)
        left = iter(range(whole))

        async def caller() -> None:
            for _ in left:
                await self.push(message)

        await asyncio.gather(*(caller() for _ in range(4)))
        if rest:
            await self.push(bodies.plain(rest, queue))
        await self.expect_pushed(before, count)

    async def expect_pushed(self, before: int, count: int) -> None:
        """Fails if the server did not store what was pushed."""
        stored = (await self.stats()).pushed_total - before
        if stored != count:
            raise LoadFailed(f"{count} jobs were pushed, and {stored} are stored")
