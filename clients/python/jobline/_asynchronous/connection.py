"""A channel of grpc.aio, and how a call on it is made: deadline, metadata, typed errors, retries.

Written by hand, as is `jobline._blocking.connection` with the same names: the rest of the client is
generated from this room and calls only what both have.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import grpc
from google.protobuf.message import Message
from grpc import aio

from jobline._backoff import RETRY
from jobline._channel import open_aio_channel
from jobline._forks import PerProcess
from jobline._identity import Identity
from jobline._push.answers import refuse_misfit
from jobline._push.calls import REPEAT_SECONDS_MAX
from jobline._push.messages import TRY_SECONDS_MAX, TRY_SHARE
from jobline._push.producers import PushCalls
from jobline._reaching import CONNECT_SECONDS, HEALTH_CHECK, Reaching, Trouble
from jobline._sealed_messages import open_response, seal_request
from jobline._status import error_from_rpc, raise_unknown
from jobline._trace_metadata import found as trace_context
from jobline.codec import Codec
from jobline.errors import ClientClosed, FailedPrecondition, JoblineError, Unavailable
from jobline.v1 import job_service_pb2 as pb
from jobline.v1.job_service_pb2_grpc import JobServiceStub

if TYPE_CHECKING:
    from jobline.v1.job_service_pb2_grpc import JobServiceAsyncStub

Request = TypeVar("Request")
Response = TypeVar("Response")
Stub = TypeVar("Stub")

closing = aclosing
sleep = asyncio.sleep

# For work that would hold up the loop.
off_loop = asyncio.to_thread


def now() -> float:
    """Returns the time of the loop, in seconds."""
    return asyncio.get_running_loop().time()


async def called(handler: Callable[..., object], *arguments: object) -> None:
    """Calls a handler, plain or async."""
    found = handler(*arguments)
    if isawaitable(found):
        await found


def was_hung_up() -> bool:
    """Returns whether a CancelledError comes of a closed channel, and not of this task."""
    task = asyncio.current_task()
    return task is not None and not task.cancelling()


@contextmanager
def typed_errors() -> Iterator[None]:
    """Turns the errors of gRPC into those of this package."""
    try:
        yield
    except grpc.RpcError as error:
        raise error_from_rpc(error) from None
    except aio.UsageError as error:  # raised by a closed channel
        raise ClientClosed(f"not sent: {error}") from error
    except asyncio.CancelledError as error:
        if not was_hung_up():
            raise
        raise Unavailable("the client was closed during the call") from error


async def messages_of(
    start: Callable[[], aio.UnaryStreamCall[Any, Response]],
) -> AsyncGenerator[Response, None]:
    """Yields the messages of a call, and cancels the call when its reader stops."""
    with typed_errors():
        call = start()
        try:
            async for message in call:
                yield message
        finally:
            call.cancel()


def of_another_loop() -> FailedPrecondition:
    """Returns the error for a call from an event loop that the connection does not belong to."""
    return FailedPrecondition(
        "this AsyncClient belongs to another event loop: make one in each loop, or use "
        "Client, which serves all threads"
    )


class _Wire:
    """A channel and its stubs. Made inside the event loop that uses it."""

    __slots__ = ("calls", "channel", "check", "is_reached", "jobs", "loop", "stubs")

    def __init__(self, channel: aio.Channel) -> None:
        self.loop = asyncio.get_running_loop()
        self.channel = channel
        self.jobs: JobServiceAsyncStub = JobServiceStub(channel)
        self.stubs: dict[Any, Any] = {}
        self.calls = PushCalls()
        self.check: aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(HEALTH_CHECK)
        self.is_reached = False


class Connection:
    """What all parts of a client share. It belongs to the event loop that uses it first."""

    def __init__(
        self,
        target: str,
        identity: Identity,
        timeout: float,
        codec: Codec | None = None,
    ) -> None:
        self.codec = codec
        self.target = target
        self._identity = identity
        # A token that is renewed is asked for in each call.
        self._fixed = None if identity.is_renewable else aio.Metadata(*identity.metadata())
        self._wires = PerProcess(self._open)
        self._closed = False
        self._giving_back: set[object] = set()
        self.timeout = timeout
        self.try_timeout = min(self.timeout * TRY_SHARE, TRY_SECONDS_MAX)
        self.trouble = Trouble(target, self.timeout)

    def of_call(self) -> aio.Metadata:
        """Returns the metadata of a call, with the trace context where the program traces."""
        traced = tuple(trace_context())
        return aio.Metadata(*self.metadata, *traced) if traced else self.metadata

    def opened(self, response: Response) -> Response:
        """Returns a streamed answer, opened by the codec if there is one."""
        if self.codec is not None:
            open_response(self.codec, cast(Message, response))
        return response

    def _open(self) -> _Wire:
        if self._closed:
            raise ClientClosed("the client is closed")
        return _Wire(open_aio_channel(self.target, self._identity.credentials))

    def _wire(self) -> _Wire:
        wire = self._wires()
        if wire.loop is not asyncio.get_running_loop():
            raise of_another_loop()
        return wire

    @property
    def metadata(self) -> aio.Metadata:
        """The metadata of a call that begins now."""
        if self._fixed is not None:
            return self._fixed
        return aio.Metadata(*self._identity.metadata())

    @property
    def channel(self) -> aio.Channel:
        """The channel of this event loop."""
        return self._wire().channel

    @property
    def jobs(self) -> JobServiceAsyncStub:
        """The stub that most calls are made with."""
        return self._wire().jobs

    @property
    def calls(self) -> PushCalls:
        """The push calls of this process."""
        return self._wire().calls

    def stub(self, kind: Callable[[aio.Channel], Stub]) -> Stub:
        """Returns the stub of another service."""
        wire = self._wire()
        if kind not in wire.stubs:
            wire.stubs[kind] = kind(wire.channel)
        stub: Stub = wire.stubs[kind]
        return stub

    async def close(self) -> None:
        """Closes the channel of this process. May be called twice."""
        self._closed = True
        wire = self._wires.made()
        if wire is not None:
            await wire.channel.close()

    async def reach(self, patience: float = CONNECT_SECONDS) -> None:
        """Returns when this process has reached the server once. Raises NotConnected: nothing
        answered within `patience` seconds, or a moment longer.
        """
        wire = self._wire()
        if wire.is_reached:
            return
        timeout = min(CONNECT_SECONDS, self.timeout)
        reaching = Reaching(self.target, now(), min(patience, timeout))
        while True:
            try:
                with typed_errors():
                    await wire.check(b"", timeout=timeout, metadata=self.metadata)
                break
            except JoblineError as error:
                pause = reaching.pause_after(now(), error)
                if pause is None:
                    break
            await sleep(pause)
        wire.is_reached = True

    async def read(
        self,
        method: aio.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        *,
        extra: float = 0.0,
    ) -> Response:
        """Makes a call that changes nothing; `extra` seconds are added to its deadline."""
        await self.reach()
        codec = self.codec
        if codec is not None:
            seal_request(codec, cast(Message, request))
        with typed_errors():
            response = await method(request, timeout=self.timeout + extra, metadata=self.of_call())
        if codec is not None:
            open_response(codec, cast(Message, response))
        return response

    async def write(
        self, method: aio.UnaryUnaryMultiCallable[Request, Response], request: Request
    ) -> Response:
        """Makes a call that changes something. Raises OutcomeUnknown without a definite reply."""
        try:
            return await self.read(method, request)
        except JoblineError as error:
            raise_unknown(error)

    async def pull(self, request: pb.PullRequest, wait: float) -> pb.PullResponse:
        """Makes a pull that waits up to `wait` seconds. Without a reply, for whatever reason, it
        releases what the server may have leased.
        """
        try:
            return await self.read(self.jobs.Pull, request, extra=wait)
        except BaseException as error:
            if not getattr(error, "definite", False):
                self._give_back(request)
            raise

    def _give_back(self, request: pb.PullRequest) -> None:
        """Does not wait: if the release is lost, the leases expire."""
        release = pb.ReleaseRequest(pull=request)
        with suppress(aio.UsageError):  # the channel is closed
            call = self.jobs.Release(release, timeout=self.timeout, metadata=self.metadata)
            # A call without a reference is cancelled.
            self._giving_back.add(call)
            call.add_done_callback(self._giving_back.discard)

    async def try_push(self, request: pb.PushRequest) -> pb.PushResponse:
        """Makes one try of a push."""
        wire = self._wire()
        if not wire.is_reached:
            await self.reach()
        with typed_errors():
            return await wire.jobs.Push(request, timeout=self.try_timeout, metadata=self.of_call())

    async def push(self, request: pb.PushRequest) -> pb.PushResponse:
        """Pushes, and repeats the call until there is a definite reply or no time is left. Raises
        OutcomeUnknown, too, for a reply that does not fit the request.
        """
        with self.calls.numbered(request) as request_id:
            return await self._push(request, request_id)

    async def _push(self, request: pb.PushRequest, request_id: str) -> pb.PushResponse:
        give_up_at = now() + min(self.timeout, REPEAT_SECONDS_MAX)
        tries = 0
        while True:
            tries += 1
            try:
                response = await self.try_push(request)
                self.trouble.ended()
                refuse_misfit(response, len(request.payloads) + len(request.jobs))
                return response  # noqa: TRY300  # an answer after the try would need a flag
            except JoblineError as error:
                pause = RETRY.after(tries, random.random)
                is_late = now() + pause > give_up_at
                if error.definite or not error.retryable or is_late:
                    raise_unknown(error, request_id=request_id, tries=tries)
                self.trouble.began(error)
            await sleep(pause)
