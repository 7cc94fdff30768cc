# Generated from jobline/_asynchronous/client.py by `make gen`: change that file instead.
"""`Client`: everything a program does with a server, blocking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

import grpc

from jobline._arguments import timeout_given
from jobline._blocking.admin import AdminApi, DeadLetterApi
from jobline._blocking.batches import BatchApi
from jobline._blocking.connection import Connection
from jobline._blocking.flows import FlowApi
from jobline._blocking.job_admin import JobApi
from jobline._blocking.leases import Leases
from jobline._blocking.limiters import LimiterApi
from jobline._blocking.producer import Producer
from jobline._blocking.queues import QueueApi
from jobline._blocking.schedules import ScheduleApi
from jobline._blocking.webhooks import WebhookApi
from jobline._channel import target_of
from jobline._forks import NeverPickled
from jobline._identity import Tls, Token, identity_of
from jobline._push.batching import limits_given
from jobline._push.push_middleware import PushMiddleware
from jobline._reaching import CONNECT_SECONDS
from jobline._sealed_messages import push_middleware_given
from jobline._times import Seconds, seconds_of
from jobline.codec import Codec


class Client(Producer, Leases, NeverPickled):
    """A connection to a server, to push jobs, work on them by hand, wait, watch, and operate.

    It connects at its first use; where no server answers, that call raises NotConnected within two
    seconds. One client serves all threads of a process; a child of a fork
    connects anew, and is a producer of its own. `with` closes it.

    - `target`: `host:port`, or `unix:/path` for a Unix socket. Default: the environment variable
      JOBLINE_SERVER, else `localhost:7070`.
    - `token`: an API key or JSON Web Token, or a function that returns the one of now; default
      JOBLINE_TOKEN, else none. Over plaintext it goes only to this host, unless `insecure_token`.
    - `tls`: True for the roots of the system, or a `Tls`; default JOBLINE_TLS and its kin, else
      plaintext. `credentials`, from `grpc.ssl_channel_credentials`, takes its place.
    - `metadata`: goes with every call; printable ASCII (else InvalidArgument).
    - `timeout`: how long a call may take in all, retries included, in seconds or as a timedelta;
      default 30 s.
    - `buffer_jobs`, `buffer_bytes`: pushes that may wait for the server (10,000 and 64 MiB); one
      more is refused with BufferFull.
    - `middleware`: around each call that pushes, the first outermost; see `PushMiddleware`.
    - `codec`: seals what is pushed, and opens what is read; see `jobline.codec`.
    """

    def __init__(  # noqa: PLR0913  # one keyword for each setting of a client
        self,
        target: str | None = None,
        *,
        credentials: grpc.ChannelCredentials | None = None,
        metadata: Mapping[str, str] | None = None,
        token: Token | None = None,
        tls: bool | Tls | None = None,
        insecure_token: bool = False,
        timeout: Seconds = 30,
        buffer_jobs: int = 10_000,
        buffer_bytes: int = 64 << 20,
        middleware: Sequence[PushMiddleware] = (),
        codec: Codec | None = None,
    ) -> None:
        seconds = timeout_given(timeout)
        limits = limits_given(buffer_jobs, buffer_bytes, seconds)
        self.target = target_of(target)
        identity = identity_of(
            self.target, credentials, metadata, token, tls, insecure_token=insecure_token
        )
        connection = Connection(self.target, identity, seconds, codec)
        super().__init__(connection, limits, push_middleware_given(middleware, codec))
        self.jobs = JobApi(connection)
        self.queues = QueueApi(connection)
        self.limiters = LimiterApi(connection)
        self.webhooks = WebhookApi(connection)
        self.schedules = ScheduleApi(connection)
        self.flows = FlowApi(connection)
        self.batches = BatchApi(connection, self)
        self.dead = DeadLetterApi(connection)
        self.admin = AdminApi(connection)

    @property
    def channel(self) -> grpc.Channel:
        """The channel, for the bare stubs of `jobline.v1`."""
        return self._connection.channel

    def connect(self, *, patience: Seconds = CONNECT_SECONDS) -> None:
        """Reaches the server now, instead of with the first call, which otherwise does the same.

        `patience`: seconds for which a server that refuses the connection is tried again (default
        2). Raises NotConnected, which is definite: nothing was sent.
        """
        self._connection.reach(seconds_of(patience))

    def close(self) -> None:
        """Waits for the pushes that were taken, and closes the connection. May be called twice."""
        try:
            pusher = self._pushers.made()
            if pusher is not None:
                pusher.close()
        finally:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
