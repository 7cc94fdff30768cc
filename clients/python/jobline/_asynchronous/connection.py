"""A channel of grpc.aio, and how a call on it is made: deadline, metadata, typed errors,
retries.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import grpc
from grpc import aio

from jobline._backoff import RETRY
from jobline._calls import REPEAT_SECONDS_MAX
from jobline._channel import open_aio_channel
from jobline._producing import PushCalls
from jobline._pushing import TRY_SECONDS_MAX, TRY_SHARE
from jobline._reaching import CONNECT_SECONDS, HEALTH_CHECK, Reaching, Trouble
from jobline._status import error_from_rpc, raise_unknown
from jobline.errors import ClientClosed, JoblineError, Unavailable
from jobline.v1 import job_service_pb2 as pb
from jobline.v1.job_service_pb2_grpc import JobServiceStub

if TYPE_CHECKING:
    from jobline.v1.job_service_pb2_grpc import JobServiceAsyncStub

Request = TypeVar("Request")
Response = TypeVar("Response")


def was_hung_up() -> bool:
    """What a CancelledError means: true if the call was ended by a channel that somebody closed,
    false if this task is being cancelled.
    """
    task = asyncio.current_task()
    return task is not None and not task.cancelling()


@contextmanager
def typed_errors() -> Iterator[None]:
    """Around a call: what gRPC raises becomes an error of ours."""
    try:
        yield
    except grpc.RpcError as error:
        raise error_from_rpc(error) from None
    except aio.UsageError as error:  # so says a channel that is closed
        raise ClientClosed(f"not sent: {error}") from error
    except asyncio.CancelledError as error:
        if not was_hung_up():
            raise
        raise Unavailable("the client was closed during the call") from error


class Connection:
    """What all parts of a client share. Made inside the event loop that uses it."""

    def __init__(
        self,
        target: str,
        credentials: grpc.ChannelCredentials | None,
        metadata: tuple[tuple[str, str], ...],
        timeout: float,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.channel = open_aio_channel(target, credentials)
        self.metadata = aio.Metadata(*metadata)
        self.timeout = timeout
        self.try_timeout = min(self.timeout * TRY_SHARE, TRY_SECONDS_MAX)
        self.trouble = Trouble(target, self.timeout)
        self.calls = PushCalls()
        self._target = target
        self._check: aio.UnaryUnaryMultiCallable[bytes, bytes]
        self._check = self.channel.unary_unary(HEALTH_CHECK)
        self._is_reached = False
        self.jobs: JobServiceAsyncStub = JobServiceStub(self.channel)
        self._giving_back: set[object] = set()

    async def reach(self, patience: float = CONNECT_SECONDS) -> None:
        """Returns when the server was reached once. Raises NotConnected: nothing answered within
        `patience` seconds, or a moment longer.
        """
        if self._is_reached:
            return
        timeout = min(CONNECT_SECONDS, self.timeout)
        reaching = Reaching(self._target, self.loop.time(), min(patience, timeout))
        while True:
            try:
                with typed_errors():
                    await self._check(b"", timeout=timeout, metadata=self.metadata)
                break
            except JoblineError as error:
                pause = reaching.pause_after(self.loop.time(), error)
                if pause is None:
                    break
            await asyncio.sleep(pause)
        self._is_reached = True

    async def read(
        self,
        method: aio.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        *,
        extra: float = 0.0,
    ) -> Response:
        """A call that changes nothing; `extra` seconds are added to its deadline."""
        await self.reach()
        with typed_errors():
            return await method(request, timeout=self.timeout + extra, metadata=self.metadata)

    async def write(
        self, method: aio.UnaryUnaryMultiCallable[Request, Response], request: Request
    ) -> Response:
        """A call that changes something: without a definite answer it raises OutcomeUnknown."""
        try:
            return await self.read(method, request)
        except JoblineError as error:
            raise_unknown(error)

    async def pull(self, request: pb.PullRequest, wait: float) -> pb.PullResponse:
        """A pull that waits so many seconds. If it brings no reply, for whatever reason, the server
        is told that nobody has what it may have leased.
        """
        try:
            return await self.read(self.jobs.Pull, request, extra=wait)
        except BaseException as error:
            if not getattr(error, "definite", False):
                self._give_back(request)
            raise

    def _give_back(self, request: pb.PullRequest) -> None:
        """Does not wait: if the server does not hear of it, the leases end by themselves."""
        release = pb.ReleaseRequest(pull=request)
        with suppress(aio.UsageError):  # the channel is closed
            call = self.jobs.Release(release, timeout=self.timeout, metadata=self.metadata)
            # A call that nobody holds is cancelled.
            self._giving_back.add(call)
            call.add_done_callback(self._giving_back.discard)

    async def try_push(self, request: pb.PushRequest) -> pb.PushResponse:
        """One try of a push."""
        if not self._is_reached:
            await self.reach()
        with typed_errors():
            return await self.jobs.Push(request, timeout=self.try_timeout, metadata=self.metadata)

    async def push(self, request: pb.PushRequest) -> pb.PushResponse:
        """A push that is safe to repeat, repeated until there is a definite answer or no time."""
        with self.calls.flying(request) as request_id:
            return await self._push(request, request_id)

    async def _push(self, request: pb.PushRequest, request_id: str) -> pb.PushResponse:
        give_up_at = self.loop.time() + min(self.timeout, REPEAT_SECONDS_MAX)
        tries = 0
        while True:
            tries += 1
            try:
                response = await self.try_push(request)
                self.trouble.ended()
                return response  # noqa: TRY300  # an answer after the try would need a flag
            except JoblineError as error:
                pause = RETRY.after(tries, random.random)
                is_late = self.loop.time() + pause > give_up_at
                if error.definite or not error.retryable or is_late:
                    raise_unknown(error, request_id=request_id, tries=tries)
                self.trouble.began(error)
            await asyncio.sleep(pause)
