"""Runs vectors through the shipped Python client; docs/clients.md describes what a runner does."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import Any, Self

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass

import jobline.v1 as protocol
from jobline import Client, Worker, error_from_rpc
from jobline.errors import JoblineError
from tests.conformance.handlers import add_handlers
from tests.conformance.vectors import Json, Mismatch, Variables, filled, match, matches

CALL_SECONDS = 30
AGAIN_SECONDS = 0.05
PACKAGE = protocol.__name__


@dataclass(frozen=True)
class Servers:
    """Addresses of the two servers that vectors run against."""

    main: str
    small: str


def run_vector(vector: dict[str, Any], servers: Servers) -> None:
    """Runs the steps of a vector in order. Raises Mismatch where one is not as expected."""
    address = servers.small if vector.get("server") == "small" else servers.main
    now = datetime.now(UTC).replace(microsecond=0)
    variables = {
        "queue": f"conformance-{uuid.uuid4().hex}",
        "past": stamp(now - timedelta(hours=1)),
        "soon": stamp(now + timedelta(hours=1)),
        "random16": uuid.uuid4().hex[:16],
    }
    with (
        Client(address) as client,
        working(vector.get("worker"), address, variables["queue"]),
        Held() as held,
    ):
        for index, step in enumerate(vector["steps"]):
            try:
                run_step(client, step, variables, held)
            except Mismatch as error:
                raise Mismatch(f"step {index + 1}: {error}") from None


class Held:
    """The streams that a vector keeps open, by name; they are cancelled at its end."""

    def __init__(self) -> None:
        self._calls: dict[str, Any] = {}
        self.over = Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for replies in self._calls.values():
            replies.cancel()

    def keep(self, name: str, replies: Any) -> None:
        """Keeps a call; one that was tried before under this name is over."""
        if name in self._calls:
            self._calls[name].cancel()
        self._calls[name] = replies

    def rest(self, step: dict[str, Any], variables: Variables) -> Json:
        """What comes on a call that was kept, from now on. Raises as any call does."""
        try:
            return {"messages": read(self._calls[step["held"]], step, variables)}
        except grpc.RpcError as error:
            raise error_from_rpc(error) from None


def stamp(moment: datetime) -> str:
    """A moment as protobuf's JSON writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def run_step(client: Client, step: dict[str, Any], variables: Variables, held: Held) -> None:
    """Runs a step; again, for at most `within` seconds, until what it returns is as expected."""
    if "pause" in step:
        time.sleep(step["pause"])
        return
    until = time.monotonic() + step.get("within", 0)
    while True:
        tried = dict(variables)
        try:
            _try_step(client, step, tried, held)
        except Mismatch:
            if time.monotonic() >= until:
                raise
            time.sleep(AGAIN_SECONDS)
        else:
            variables.update(tried)
            return


def _try_step(client: Client, step: dict[str, Any], variables: Variables, held: Held) -> None:
    try:
        if "held" in step:
            got = held.rest(step, variables)
        elif "call" in step:
            got = call(client, step, variables, held)
        else:
            got = client_verb(client, step, variables)
    except JoblineError as error:
        if "error" not in step:
            raise Mismatch(f"refused with {facts_of(error)}: {error}") from None
        match(step["error"], facts_of(error), variables, "error")
    else:
        if "error" in step:
            raise Mismatch(f"it was not refused: {got}")
        match(step["expect"], got, variables)


def facts_of(error: JoblineError) -> Json:
    """What an error of the client says, in the words of the vectors."""
    return {
        "code": error.code,
        "reason": error.reason,
        "field": error.field or "",
        "definite": error.definite,
        "retryable": error.retryable,
        "kind": type(error).__name__,
    }


def call(client: Client, step: dict[str, Any], variables: Variables, held: Held) -> Json:
    """Makes a call of the protocol: the reply in protobuf's JSON, or `{messages: […]}` of a
    stream.
    """
    method = method_of(step["call"])
    make, made = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
    frames = filled(step.get("with", {}), variables)
    requests = [ParseDict(one, make()) for one in (frames if method.client_streaming else [frames])]
    kind = (
        f"{'stream' if method.client_streaming else 'unary'}_"
        f"{'stream' if method.server_streaming else 'unary'}"
    )
    start = getattr(client.channel, kind)(
        f"/{method.containing_service.full_name}/{method.name}",
        request_serializer=make.SerializeToString,
        response_deserializer=made.FromString,
    )
    try:
        if not method.server_streaming:
            return MessageToDict(start(requests[0], timeout=CALL_SECONDS))
        if not method.client_streaming:
            return {"messages": read(start(requests[0], timeout=CALL_SECONDS), step, variables)}
        over = held.over if "hold" in step else Event()
        try:
            sent = frames_of(requests, over if step.get("read") == "some" else None)
            replies = start(sent, timeout=CALL_SECONDS)
            if "hold" in step:
                held.keep(step["hold"], replies)
            return {"messages": read(replies, step, variables)}
        finally:
            if over is not held.over:
                over.set()
    except grpc.RpcError as error:
        raise error_from_rpc(error) from None


def frames_of(requests: list[Any], over: Event | None) -> Iterator[Any]:
    """The frames of a stream, and its half-close, which comes with the end of the call if that is
    cancelled: a worker that half-closes says goodbye.
    """
    yield from requests
    if over is not None:
        over.wait(CALL_SECONDS)


def read(replies: Any, step: dict[str, Any], variables: Variables) -> list[Json]:
    """The messages of a stream: all, or with `read: some` until they are as expected."""
    messages = []
    for reply in replies:
        messages.append(MessageToDict(reply))
        if step.get("read") == "some" and matches(
            step.get("expect"), {"messages": messages}, dict(variables)
        ):
            if "hold" not in step:
                replies.cancel()
            break
    return messages


def method_of(name: str) -> MethodDescriptor:
    """The descriptor of `Service/Method`."""
    service, _, method = name.partition("/")
    found = descriptor_pool.Default().FindServiceByName(f"{PACKAGE}.{service}")
    return found.methods_by_name[method]


def client_verb(client: Client, step: dict[str, Any], variables: Variables) -> Json:
    """Calls the hand-written part of the client."""
    given = filled(step["with"], variables)
    queue, payload = given.pop("queue"), given.pop("payload")
    if step["client"] == "push":
        pushed = client.push(queue, payload, **given)
        return {
            "id": str(pushed.id),
            "outcome": pushed.outcome.name,
            "ack_level": pushed.ack_level.name,
        }
    return {"result": client.push_and_wait(queue, payload, **given)}


@contextmanager
def working(how: dict[str, Any] | None, address: str, queue: str) -> Iterator[None]:
    """Runs the worker of a vector, if it has one, beside its steps; then stops it politely."""
    if how is None:
        yield
        return
    worker = Worker(address, version=how.get("version", ""), soft_stop=5, hard_stop=1)
    add_handlers(worker, queue, how["handlers"])
    thread = Thread(target=worker.run, name=queue, daemon=True)
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join()
