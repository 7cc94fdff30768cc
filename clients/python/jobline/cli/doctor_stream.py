"""What the doctor sees of the way to the server: do streams pass, and stay; who may call.

A unary call shows nothing of a proxy that buffers streams, or ends quiet or long ones. Workers and
watchers hold streams for hours; both sides send something every 15 s.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import grpc

from jobline._identity import is_near
from jobline._status import error_from_rpc
from jobline.cli.command import Cli
from jobline.cli.connection import Connection
from jobline.cli.doctor_probe import QUEUE
from jobline.cli.durations import show_span
from jobline.cli.findings import Finding, failed, fine, worrying
from jobline.errors import PermissionDenied, Unauthenticated
from jobline.v1 import job_service_pb2 as pb
from jobline.v1.job_service_pb2_grpc import JobServiceStub

_FIRST_SECONDS_MAX = 5.0
_PROXY = (
    "A proxy between here and there ends it: raise its timeouts for idle and for long streams "
    "(Envoy: `timeout: 0s` of the route; nginx: `grpc_read_timeout`)."
)


def access(channel: grpc.Channel, connection: Connection) -> Finding:
    """Says who may call. A call without a token finds it out."""
    stats: grpc.UnaryUnaryMultiCallable[bytes, bytes]
    stats = channel.unary_unary("/jobline.v1.AdminService/GetStats")
    try:
        stats(b"", timeout=_FIRST_SECONDS_MAX)
    except grpc.RpcError as failure:
        # Whose certificate it knows, a server asks for no token, and refuses all the same.
        is_guarded = isinstance(error_from_rpc(failure), (Unauthenticated, PermissionDenied))
    else:
        is_guarded = False
    return said_of(connection, is_guarded=is_guarded)


def said_of(connection: Connection, *, is_guarded: bool) -> Finding:
    """Returns what is to be said of a server that asks callers who they are, or does not."""
    way = "by TLS" if connection.tls else "in plaintext"
    if is_guarded:
        return fine("access", f"callers need a token or a certificate; reached {way}")
    if connection.tls and connection.client_certificate:
        # Of a server that knows callers by certificates as of one that lets everybody call.
        return fine("access", "no token was needed with this certificate; reached by TLS")
    if is_near(connection.server):
        return fine("access", f"callers need no token; reached {way}, on this machine")
    return worrying(
        "access",
        "callers need no token: whoever reaches this address may do everything",
        "Start it with --auth (docs/guide/security.md), or keep it to networks that you trust.",
    )


def streams(cli: Cli, idle: float) -> Iterator[Finding]:
    """Opens a stream that nothing happens on, and holds it for `idle` seconds, 0 for no longer than
    its first message takes."""
    began = time.monotonic()
    call = JobServiceStub(cli.client.channel).Watch(
        pb.WatchRequest(queues=[QUEUE]),
        timeout=idle + _FIRST_SECONDS_MAX,
        metadata=cli.connection.metadata(),
    )
    try:
        next(call)
        took = time.monotonic() - began
        yield fine("stream", f"the first message in {show_span(took)}")
        if idle:
            yield _held(cli, call, began, idle)
    except grpc.RpcError as failure:
        yield _not_passed(failure)
    finally:
        call.cancel()


def _not_passed(failure: grpc.RpcError) -> Finding:
    error = error_from_rpc(failure)
    if error.code == "DEADLINE_EXCEEDED":
        what = f"nothing came in {_FIRST_SECONDS_MAX:.0f} s"
        return failed("stream", what, "A proxy that buffers, or knows no HTTP/2 to its backend?")
    return failed("stream", error.message, "Does everything between here and there pass HTTP/2?")


def _held(cli: Cli, call: Iterator[pb.WatchResponse], began: float, idle: float) -> Finding:
    """Waits; the end of the call's own time is what should end it."""
    why = "it was closed"
    end = began + idle
    with cli.out.progress(f"holding a quiet stream for {show_span(idle)}", None):
        try:
            for _ in call:
                if time.monotonic() >= end:
                    break
        except grpc.RpcError as failure:
            why = error_from_rpc(failure).message
    held = time.monotonic() - began
    if held < idle:
        return failed("quiet stream", f"cut after {show_span(held)}: {why}", _PROXY)
    return fine("quiet stream", f"held for {show_span(idle)}")
