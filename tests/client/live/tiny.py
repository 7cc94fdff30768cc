"""A tiny server for the client's tests: the protocol kept honestly, in memory, over a real socket.

It knows pushes with request ids and keys, leases with deliveries, settles, waits, and streams with
windows, sessions and confirms. It knows no disk, backoff, priorities or settings: delays wait
until `promote`. What it does and no good server would: it loses answers, holds calls at a gate,
breaks streams, falls silent.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
from google.protobuf.message import Message
from grpc import aio

from jobline.v1 import job_pb2
from jobline.v1 import job_service_pb2 as pb
from tests.client.live.tiny_store import Store
from tests.client.live.tiny_stream import StreamPort

_UNARY: dict[str, Any] = {
    "Push": pb.PushRequest,
    "Pull": pb.PullRequest,
    "Ack": pb.AckRequest,
    "Fail": pb.FailRequest,
    "Release": pb.ReleaseRequest,
    "Extend": pb.ExtendRequest,
}


class TinyServer:
    """One server. `calls` counts what was called, `requests` keeps the pushes."""

    def __init__(self) -> None:
        self.store = Store()
        self.store.changed = self._handle_change
        self.calls: Counter[str] = Counter()
        self.pushes: list[pb.PushRequest] = []
        self.given_back: list[pb.PullRequest] = []
        self.lost_answers: Counter[str] = Counter()
        self.polite_ends: Counter[str] = Counter()
        self.refusals: dict[str, deque[tuple[grpc.StatusCode, str, tuple[Any, ...]] | None]] = {}
        self.gates: dict[str, asyncio.Event] = {}
        self.ports: list[StreamPort] = []
        self.frames_heard = 0
        # So long that nobody takes a busy machine for a silent server.
        self.heartbeat = 20.0
        self.wrong_count: int | None = None  # what pushes are told in place of theirs
        self.is_silent = False
        self.greeting: pb.StreamResponse | None = None  # said to each stream that opens
        self.address = ""
        self._change = asyncio.Event()
        self._server: aio.Server | None = None
        # Keeps the port while it is stopped: others would be given its number.
        self._place: socket.socket | None = None

    # ------------------------------------------------------------------ what tests do to it

    def lose_answers(self, method: str, times: int = 1) -> None:
        """The call happens, and its caller is told UNAVAILABLE."""
        self.lost_answers[method] += times

    def end_politely(self, method: str, times: int = 1) -> None:
        """The call ends OK, and has said nothing."""
        self.polite_ends[method] += times

    def refuse(
        self,
        method: str,
        code: grpc.StatusCode,
        message: str = "no",
        metadata: tuple[Any, ...] = (),
    ) -> None:
        """The next call does not happen."""
        self.refusals.setdefault(method, deque()).append((code, message, metadata))

    def accept(self, method: str) -> None:
        """The next call happens; for one between those that do not."""
        self.refusals.setdefault(method, deque()).append(None)

    def hold(self, method: str) -> asyncio.Event:
        """Calls wait until the event is set."""
        self.gates[method] = asyncio.Event()
        return self.gates[method]

    async def until(self, condition: Callable[[], Any]) -> None:
        """Waits until something that the store tells of is so."""
        while not condition():
            self._change.clear()
            await self._change.wait()

    def jobs(self, state: int | None = None) -> list[Any]:
        return [job for job in self.store.jobs.values() if state is None or job.state == state]

    def push(self, queue: str, *payloads: bytes, **options: Any) -> list[int]:
        request = pb.PushRequest(queue=queue, payloads=payloads)
        request.options.MergeFrom(job_pb2.JobOptions(**options))
        response = self.store.push(request)
        return list(range(response.first_id, response.first_id + response.count))

    def _handle_change(self) -> None:
        self._change.set()
        for port in self.ports:
            port.wake.set()

    # ------------------------------------------------------------------ the calls

    def _unary(self, method: str) -> Callable[[Any, Any], Any]:
        async def call(request: Any, context: aio.ServicerContext[Any, Any]) -> Message:
            self.calls[method] += 1
            self._change.set()
            if method in self.gates:
                await self.gates[method].wait()
            await self._refuse(method, context)
            response: Message = await getattr(self, f"_{method.lower()}")(request)
            if self.lost_answers[method]:
                self.lost_answers[method] -= 1
                await context.abort(grpc.StatusCode.UNAVAILABLE, "the answer was lost")
            return response

        return call

    async def _refuse(self, method: str, context: aio.ServicerContext[Any, Any]) -> None:
        refusals = self.refusals.get(method)
        refusal = refusals.popleft() if refusals else None
        if refusal is not None:
            await context.abort(*refusal)

    async def _push(self, request: pb.PushRequest) -> pb.PushResponse:
        self.pushes.append(request)
        response = self.store.push(request)
        if self.wrong_count is not None:
            response.count = self.wrong_count
        return response

    async def _pull(self, request: pb.PullRequest) -> pb.PullResponse:
        queues = [entry.queue for entry in request.queues]
        names = [(queue, name) for queue in queues for name in request.names]
        jobs = self.store.lease(queues, request.max_jobs, "", names)
        return pb.PullResponse(jobs=[job.leased() for job in jobs])

    async def _ack(self, request: pb.AckRequest) -> pb.AckResponse:
        pairs = [(id_, d, b"") for id_, d in zip(request.ids, request.deliveries, strict=True)]
        pairs += [(item.id, item.delivery, item.result) for item in request.items]
        return pb.AckResponse(exceptions=_exceptions([self.store.ack(*pair) for pair in pairs]))

    async def _fail(self, request: pb.FailRequest) -> pb.FailResponse:
        return pb.FailResponse(results=[self.store.fail(item) for item in request.items])

    async def _release(self, request: pb.ReleaseRequest) -> pb.ReleaseResponse:
        if request.HasField("pull"):
            self.given_back.append(request.pull)
            self._change.set()
        outcomes = [self.store.release(item) for item in request.items]
        return pb.ReleaseResponse(exceptions=_exceptions(outcomes))

    async def _extend(self, request: pb.ExtendRequest) -> pb.ExtendResponse:
        outcomes = [self.store.extend(item) for item in request.items]
        return pb.ExtendResponse(exceptions=_exceptions(outcomes))

    async def _wait(
        self, request: pb.WaitRequest, context: aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[pb.WaitResponse]:
        self.calls["Wait"] += 1
        self._change.set()
        if "Wait" in self.gates:
            await self.gates["Wait"].wait()
        if self.polite_ends["Wait"]:
            self.polite_ends["Wait"] -= 1
            return
        remaining = list(request.ids)
        try:
            async with asyncio.timeout(request.timeout.ToNanoseconds() / 1e9):
                while remaining:
                    for id_ in list(remaining):
                        job = self.store.jobs.get(id_)
                        if job is not None and not job.has_ended:
                            continue
                        remaining.remove(id_)
                        yield _end_of(id_, job)
                        if self.lost_answers["Wait"]:
                            self.lost_answers["Wait"] -= 1
                            await context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
                    await self.until(
                        lambda: (
                            any(self.store.jobs[id_].has_ended for id_ in remaining)
                            or not remaining
                        )
                    )
        except TimeoutError:
            return

    async def _stream(
        self, requests: AsyncIterator[pb.StreamRequest], context: aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[pb.StreamResponse]:
        self.calls["Stream"] += 1
        self._change.set()
        await self._refuse("Stream", context)
        port = StreamPort(self, context)
        self.ports.append(port)
        try:
            async for frame in port.talk(requests):
                yield frame
        finally:
            self.ports.remove(port)
            self._change.set()

    async def start(self, port: int = 0) -> None:
        if not port:
            self.leave()
            self._place = socket.socket()
            self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._place.bind(("127.0.0.1", 0))
            port = self._place.getsockname()[1]
        handlers: dict[str, Any] = {
            method: grpc.unary_unary_rpc_method_handler(
                self._unary(method), kind.FromString, lambda answer: answer.SerializeToString()
            )
            for method, kind in _UNARY.items()
        }
        handlers["Wait"] = grpc.unary_stream_rpc_method_handler(
            self._wait, pb.WaitRequest.FromString, pb.WaitResponse.SerializeToString
        )
        handlers["Stream"] = grpc.stream_stream_rpc_method_handler(
            self._stream, pb.StreamRequest.FromString, pb.StreamResponse.SerializeToString
        )
        self._server = aio.server(options=[("grpc.so_reuseport", 0)])
        service = grpc.method_handlers_generic_handler("jobline.v1.JobService", handlers)
        self._server.add_generic_rpc_handlers((service,))
        number = self._server.add_insecure_port(f"127.0.0.1:{port}")
        self.address = f"127.0.0.1:{number}"
        await self._server.start()

    async def stop(self) -> None:
        """Ends like a killed process: calls break."""
        assert self._server is not None
        await self._server.stop(None)

    def leave(self) -> None:
        """Gives its port back."""
        if self._place is not None:
            self._place.close()
            self._place = None


def _exceptions(outcomes: list[int]) -> list[pb.SettleException]:
    return [
        pb.SettleException(index=index, outcome=pb.SettleOutcome.ValueType(outcome))
        for index, outcome in enumerate(outcomes)
        if outcome != pb.SETTLE_OUTCOME_DONE
    ]


def _end_of(id_: int, job: Any) -> pb.WaitResponse:
    if job is None:
        return pb.WaitResponse(id=id_, not_found=True)
    return pb.WaitResponse(id=id_, state=job.state, result=job.result, error=job.error)


@asynccontextmanager
async def tiny_server() -> AsyncIterator[TinyServer]:
    """A running tiny server on a free port."""
    server = TinyServer()
    await server.start()
    try:
        yield server
    finally:
        for gate in server.gates.values():
            gate.set()
        await server.stop()
        server.leave()
