"""`AsyncClient`: everything a program does with a server, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

import grpc
from grpc import aio

from jobline._arguments import middleware_given, timeout_given
from jobline._asynchronous.admin import AdminApi, DeadLetterApi, QueueApi
from jobline._asynchronous.connection import Connection
from jobline._asynchronous.job_admin import JobApi
from jobline._asynchronous.leases import Leases
from jobline._asynchronous.producer import Producer
from jobline._batching import limits_given
from jobline._channel import credentials_of, metadata_of, target_of
from jobline._forks import Forks, NeverPickled, PerProcess
from jobline._ids import RequestIds
from jobline._outgoing import PushMiddleware
from jobline._pushing_aio import AioPusher
from jobline._reaching import CONNECT_SECONDS
from jobline._times import Seconds, seconds_of
from jobline.errors import ClientClosed, FailedPrecondition


class AsyncClient(Producer, Leases, NeverPickled):
    """A connection to a server, to push jobs, work on them by hand, wait, watch, and operate.

    It connects at its first use; where no server answers, that call raises NotConnected within two
    seconds. It belongs to the event loop of that use: calls from another loop
    raise FailedPrecondition. So does a connection in a child of a process that was connected at the
    fork; one that was not leaves a child free to connect. `async with` closes it.

    - `target`: `host:port`, or `unix:/path` for a Unix socket. Default: what the environment says
      in JOBLINE_SERVER, else `localhost:7070`.
    - `credentials`: from `grpc.ssl_channel_credentials`; None (the default) is plaintext.
    - `metadata`: goes with every call; printable ASCII (else InvalidArgument).
    - `timeout`: how long a call may take in all, retries included, in seconds or as a timedelta;
      default 30 s.
    - `buffer_jobs`, `buffer_bytes`: pushes that may wait for the server (10,000 and 64 MiB); one
      more is refused with BufferFull.
    - `middleware`: around each call that pushes, the first outermost; see `PushMiddleware`.
    """

    def __init__(
        self,
        target: str | None = None,
        *,
        credentials: grpc.ChannelCredentials | None = None,
        metadata: Mapping[str, str] | None = None,
        timeout: Seconds = 30,
        buffer_jobs: int = 10_000,
        buffer_bytes: int = 64 << 20,
        middleware: Sequence[PushMiddleware] = (),
    ) -> None:
        self.target = target_of(target)
        self.jobs = JobApi(self._link)
        self.queues = QueueApi(self._link)
        self.dead = DeadLetterApi(self._link)
        self.admin = AdminApi(self._link)
        self._credentials = credentials_of(credentials)
        self._metadata = metadata_of(metadata)
        self._timeout = timeout_given(timeout)
        self._limits = limits_given(buffer_jobs, buffer_bytes, self._timeout)
        self._push_middleware = middleware_given(middleware, PushMiddleware)
        self._new_id = RequestIds()
        self._connections = PerProcess(self._connect)
        self._pushers = PerProcess(self._make_pusher)
        self._pusher: AioPusher | None = None
        self._pusher_forks = 0
        self._closed = False

    @property
    def channel(self) -> aio.Channel:
        """The channel, for the bare stubs of `jobline.v1`."""
        return self._link().channel

    async def connect(self, *, patience: Seconds = CONNECT_SECONDS) -> None:
        """Reaches the server now, instead of with the first call, which otherwise does the same.

        `patience`: seconds for which a server that refuses the connection is tried again (default
        2). Raises NotConnected, which is definite: nothing was sent.
        """
        await self._link().reach(seconds_of(patience))

    async def close(self) -> None:
        """Waits for the pushes that were taken, and closes the connection. May be called twice."""
        self._closed = True
        try:
            pusher = self._pushers.made()
            if pusher is not None:
                await pusher.close()
        finally:
            connection = self._connections.made()
            if connection is not None:
                await connection.channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _connect(self) -> Connection:
        if self._closed:
            raise ClientClosed("the client is closed")
        return Connection(self.target, self._credentials, self._metadata, self._timeout)

    def _make_pusher(self) -> AioPusher:
        link = self._link()
        return AioPusher(link.try_push, self._limits, link.calls, link.trouble)

    def _link(self) -> Connection:
        connection = self._connections()
        if connection.loop is not asyncio.get_running_loop():
            raise _of_another_loop()
        return connection

    def _pushing(self) -> AioPusher:
        # On the way of every push. A loop that does not run at a fork may go on in both processes:
        # a pusher of the loop that runs may be the parent's.
        loop = asyncio.get_running_loop()
        pusher = self._pusher
        if pusher is None or pusher.loop is not loop or self._pusher_forks != Forks.count:
            pusher = self._pushers()
            if pusher.loop is not loop:
                raise _of_another_loop()
            self._pusher, self._pusher_forks = pusher, Forks.count
        return pusher


def _of_another_loop() -> FailedPrecondition:
    return FailedPrecondition(
        "this AsyncClient belongs to another event loop: make one in each loop, or use "
        "Client, which serves all threads"
    )
