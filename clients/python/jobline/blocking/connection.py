"""A channel, and how a call on it is made: deadline, metadata, typed errors, retries."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import grpc

from jobline.backoff import RETRY
from jobline.channel import metadata_of, open_channel
from jobline.errors import ClientClosed, JoblineError
from jobline.forks import PerProcess
from jobline.pushing import TRY_SHARE
from jobline.status import error_from_rpc, outcome_unknown
from jobline.times import Seconds, seconds_of
from jobline.v1 import job_service_pb2 as pb
from jobline.v1.job_service_pb2_grpc import JobServiceStub

Request = TypeVar("Request")
Response = TypeVar("Response")
Stub = TypeVar("Stub")


@contextmanager
def typed_errors() -> Iterator[None]:
    """Around a call: what gRPC raises becomes an error of ours."""
    try:
        yield
    except grpc.RpcError as error:
        raise error_from_rpc(error) from error
    except ValueError as error:  # so says a channel that is closed
        raise ClientClosed(f"not sent: {error}") from error


class _Wire:
    """A channel and its stubs."""

    __slots__ = ("channel", "jobs", "stubs")

    def __init__(self, channel: grpc.Channel) -> None:
        self.channel = channel
        self.jobs: JobServiceStub = JobServiceStub(channel)
        self.stubs: dict[Any, Any] = {}


class Connection:
    """What all parts of a client share. Each process that has a copy of it, by a fork, has a
    channel of its own.
    """

    def __init__(
        self,
        target: str,
        credentials: grpc.ChannelCredentials | None,
        metadata: Mapping[str, str] | None,
        timeout: Seconds,
    ) -> None:
        self._target = target
        self._credentials = credentials
        self._wires = PerProcess(self._open)
        self._closed = False
        self.metadata = metadata_of(metadata)
        self.timeout = seconds_of(timeout)
        self.try_timeout = self.timeout * TRY_SHARE

    def _open(self) -> _Wire:
        if self._closed:
            raise ClientClosed("the client is closed")
        return _Wire(open_channel(self._target, self._credentials))

    @property
    def channel(self) -> grpc.Channel:
        """This process's channel."""
        return self._wires().channel

    @property
    def jobs(self) -> JobServiceStub:
        """The stub that most calls are made with."""
        return self._wires().jobs

    def stub(self, kind: Callable[[grpc.Channel], Stub]) -> Stub:
        """The stub of another service."""
        stubs = self._wires().stubs
        if kind not in stubs:
            stubs[kind] = kind(self.channel)
        stub: Stub = stubs[kind]
        return stub

    def close(self) -> None:
        """Closes the channel of this process. May be called twice."""
        self._closed = True
        wire = self._wires.made()
        if wire is not None:
            wire.channel.close()

    def read(
        self,
        method: grpc.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        *,
        extra: float = 0.0,
    ) -> Response:
        """A call that changes nothing; `extra` seconds are added to its deadline."""
        with typed_errors():
            return method(request, timeout=self.timeout + extra, metadata=self.metadata)

    def write(
        self, method: grpc.UnaryUnaryMultiCallable[Request, Response], request: Request
    ) -> Response:
        """A call that changes something: without a definite answer it raises OutcomeUnknown."""
        try:
            return self.read(method, request)
        except JoblineError as error:
            raise outcome_unknown(error) from error

    def start_push(self, request: pb.PushRequest) -> grpc.Future[pb.PushResponse]:
        """One try of a push; the answer comes on a thread of gRPC."""
        return self.jobs.Push.future(request, timeout=self.try_timeout, metadata=self.metadata)

    def push(self, request: pb.PushRequest) -> pb.PushResponse:
        """A push that is safe to repeat, repeated until there is a definite answer or no time."""
        give_up_at = time.monotonic() + self.timeout
        tries = 0
        while True:
            tries += 1
            try:
                with typed_errors():
                    return self.jobs.Push(request, timeout=self.try_timeout, metadata=self.metadata)
            except JoblineError as error:
                pause = RETRY.after(tries, random.random)
                is_late = time.monotonic() + pause > give_up_at
                if error.definite or not error.retryable or is_late:
                    request_id = request.request_id or None
                    raise outcome_unknown(error, request_id=request_id, tries=tries) from error
            time.sleep(pause)
