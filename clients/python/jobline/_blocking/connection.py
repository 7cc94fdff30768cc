"""A channel, and how a call on it is made: deadline, metadata, typed errors, retries.

Written by hand, as is `jobline._asynchronous.connection` with the same names.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TypeVar, cast

import grpc
from google.protobuf.message import Message

from jobline._backoff import RETRY
from jobline._channel import open_channel
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
from jobline.errors import ClientClosed, JoblineError
from jobline.v1 import job_service_pb2 as pb
from jobline.v1.job_service_pb2_grpc import JobServiceStub

Request = TypeVar("Request")
Response = TypeVar("Response")
Response_co = TypeVar("Response_co", covariant=True)
Stub = TypeVar("Stub")

now = time.monotonic
sleep = time.sleep


def called(handler: Callable[..., object], *arguments: object) -> None:
    """Calls a handler."""
    handler(*arguments)


def off_loop(work: Callable[..., object], *arguments: object) -> None:
    """Calls what the async client calls in a thread."""
    work(*arguments)


@contextmanager
def closing(values: Iterator[Response]) -> Iterator[Iterator[Response]]:
    """Closes a generator at the end of a `with`, as `contextlib.aclosing` does."""
    try:
        yield values
    finally:
        if isinstance(values, Generator):
            values.close()


@contextmanager
def typed_errors() -> Iterator[None]:
    """Turns the errors of gRPC into those of this package."""
    try:
        yield
    except grpc.RpcError as error:
        raise error_from_rpc(error) from None
    except ValueError as error:  # raised by a closed channel
        raise ClientClosed(f"not sent: {error}") from error


class _StreamedCall(Protocol[Response_co]):
    """A call that streams messages."""

    def __iter__(self) -> Iterator[Response_co]: ...

    def cancel(self) -> bool: ...


def messages_of(start: Callable[[], _StreamedCall[Response]]) -> Iterator[Response]:
    """Yields the messages of a call, and cancels the call when its reader stops."""
    with typed_errors():
        call = start()
        try:
            yield from call
        finally:
            call.cancel()


class _Wire:
    """A channel and its stubs."""

    __slots__ = ("calls", "channel", "check", "is_reached", "jobs", "stubs")

    def __init__(self, channel: grpc.Channel) -> None:
        self.channel = channel
        self.jobs: JobServiceStub = JobServiceStub(channel)
        self.stubs: dict[Any, Any] = {}
        self.calls = PushCalls()
        self.check: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(HEALTH_CHECK)
        self.is_reached = False


class Connection:
    """What all parts of a client share. Each process that has a copy of it, by a fork, has a
    channel of its own.
    """

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
        self._fixed = None if identity.is_renewable else identity.metadata()
        self._wires = PerProcess(self._open)
        self._closed = False
        self._giving_back: set[object] = set()
        self.timeout = timeout
        self.try_timeout = min(self.timeout * TRY_SHARE, TRY_SECONDS_MAX)
        self.trouble = Trouble(target, self.timeout)

    def of_call(self) -> tuple[tuple[str, str], ...]:
        """Returns the metadata of a call, with the trace context where the program traces."""
        return (*self.metadata, *trace_context())

    def opened(self, response: Response) -> Response:
        """Returns a streamed answer, opened by the codec if there is one."""
        if self.codec is not None:
            open_response(self.codec, cast(Message, response))
        return response

    def _open(self) -> _Wire:
        if self._closed:
            raise ClientClosed("the client is closed")
        return _Wire(open_channel(self.target, self._identity.credentials))

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata of a call that begins now."""
        return self._identity.metadata() if self._fixed is None else self._fixed

    @property
    def channel(self) -> grpc.Channel:
        """This process's channel."""
        return self._wires().channel

    @property
    def jobs(self) -> JobServiceStub:
        """The stub that most calls are made with."""
        return self._wires().jobs

    @property
    def calls(self) -> PushCalls:
        """The push calls of this process."""
        return self._wires().calls

    def stub(self, kind: Callable[[grpc.Channel], Stub]) -> Stub:
        """Returns the stub of another service."""
        wire = self._wires()
        if kind not in wire.stubs:
            wire.stubs[kind] = kind(wire.channel)
        stub: Stub = wire.stubs[kind]
        return stub

    def close(self) -> None:
        """Closes the channel of this process. May be called twice."""
        self._closed = True
        wire = self._wires.made()
        if wire is not None:
            wire.channel.close()

    def reach(self, patience: float = CONNECT_SECONDS) -> None:
        """Returns when this process has reached the server once. Raises NotConnected: nothing
        answered within `patience` seconds, or a moment longer.
        """
        wire = self._wires()
        if wire.is_reached:
            return
        timeout = min(CONNECT_SECONDS, self.timeout)
        reaching = Reaching(self.target, now(), min(patience, timeout))
        while True:
            try:
                with typed_errors():
                    wire.check(b"", timeout=timeout, metadata=self.metadata)
                break
            except JoblineError as error:
                pause = reaching.pause_after(now(), error)
                if pause is None:
                    break
            sleep(pause)
        wire.is_reached = True

    def read(
        self,
        method: grpc.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        *,
        extra: float = 0.0,
    ) -> Response:
        """Makes a call that changes nothing; `extra` seconds are added to its deadline."""
        self.reach()
        codec = self.codec
        if codec is not None:
            seal_request(codec, cast(Message, request))
        with typed_errors():
            response = method(request, timeout=self.timeout + extra, metadata=self.of_call())
        if codec is not None:
            open_response(codec, cast(Message, response))
        return response

    def write(
        self, method: grpc.UnaryUnaryMultiCallable[Request, Response], request: Request
    ) -> Response:
        """Makes a call that changes something. Raises OutcomeUnknown without a definite reply."""
        try:
            return self.read(method, request)
        except JoblineError as error:
            raise_unknown(error)

    def pull(self, request: pb.PullRequest, wait: float) -> pb.PullResponse:
        """Makes a pull that waits up to `wait` seconds. Without a reply, for whatever reason, it
        releases what the server may have leased.
        """
        try:
            return self.read(self.jobs.Pull, request, extra=wait)
        except BaseException as error:
            if not getattr(error, "definite", False):
                self._give_back(request)
            raise

    def _give_back(self, request: pb.PullRequest) -> None:
        """Does not wait: if the release is lost, the leases expire."""
        release = pb.ReleaseRequest(pull=request)
        with suppress(ValueError):  # the channel is closed
            call = self.jobs.Release.future(release, timeout=self.timeout, metadata=self.metadata)
            # A call without a reference is cancelled.
            self._giving_back.add(call)
            call.add_done_callback(self._giving_back.discard)

    def start_push(self, request: pb.PushRequest) -> grpc.Future[pb.PushResponse]:
        """Starts one try of a push; the reply arrives on a thread of gRPC."""
        self.reach()
        return self.jobs.Push.future(request, timeout=self.try_timeout, metadata=self.of_call())

    def push(self, request: pb.PushRequest) -> pb.PushResponse:
        """Pushes, and repeats the call until there is a definite reply or no time is left. Raises
        OutcomeUnknown, too, for a reply that does not fit the request.
        """
        self.reach()
        with self.calls.numbered(request) as request_id:
            return self._push(request, request_id)

    def _push(self, request: pb.PushRequest, request_id: str) -> pb.PushResponse:
        give_up_at = now() + min(self.timeout, REPEAT_SECONDS_MAX)
        tries = 0
        while True:
            tries += 1
            try:
                with typed_errors():
                    response = self.jobs.Push(
                        request, timeout=self.try_timeout, metadata=self.of_call()
                    )
                self.trouble.ended()
                refuse_misfit(response, len(request.payloads) + len(request.jobs))
                return response  # noqa: TRY300  # an answer after the try would need a flag
            except JoblineError as error:
                pause = RETRY.after(tries, random.random)
                is_late = now() + pause > give_up_at
                if error.definite or not error.retryable or is_late:
                    raise_unknown(error, request_id=request_id, tries=tries)
                self.trouble.began(error)
            sleep(pause)
