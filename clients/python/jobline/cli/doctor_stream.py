"""What the doctor sees of the way to the server: do streams pass, and stay; who may call.

A unary call shows nothing of a proxy that buffers streams, or ends quiet or long ones. Workers and
watchers hold streams for hours; both sides send something every 15 s.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import grpc

from jobline._status import error_from_rpc
from jobline.cli.command import Cli
from jobline.cli.doctor_probe import QUEUE
from jobline.cli.durations import show_span
from jobline.cli.findings import Finding, failed, fine, worrying
from jobline.v1 import job_service_pb2 as pb
from jobline.v1.job_service_pb2_grpc import JobServiceStub

_FIRST_SECONDS_MAX = 5.0
_LOCAL = ("localhost:", "127.", "[::1]:", "unix:", "unix-abstract:")
_PROXY = (
    "A proxy between here and there ends it: raise its timeouts for idle and for long streams "
    "(Envoy: `timeout: 0s` of the route; nginx: `grpc_read_timeout`)."
)


def access(server: str) -> Finding:
    """Says who may call: this version knows no users."""
    if server.startswith(_LOCAL):
        return fine("access", "no users or passwords; reached on this machine")
    return worrying(
        "access",
        "no users or passwords: whoever reaches this address may do everything",
        "Keep it to networks that you trust, or put a proxy in front that asks for them.",
    )


def streams(cli: Cli, idle: float) -> Iterator[Finding]:
    """Opens a stream that nothing happens on, and holds it for `idle` seconds, 0 for no longer than
    its first message takes."""
    began = time.monotonic()
    call = JobServiceStub(cli.client.channel).Watch(
        pb.WatchRequest(queues=[QUEUE]), timeout=idle + _FIRST_SECONDS_MAX
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
