"""The two transports under the same handlers.

`grpcio` is the reference. `native` (the extra `jobline-server[native]`) serves unary calls through
HTTP/2 in Rust, several times faster; streams go through a grpcio server that stands behind it.
Handlers know neither. What a transport cannot do is said at the start, and never later.
"""

from __future__ import annotations

import errno
import socket
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import grpc
from grpc import aio

from jobline_server.addresses import split_address
from jobline_server.rpc.admission import Admission
from jobline_server.rpc.delivery import listen_to_front, with_written_replies
from jobline_server.rpc.guard import Handler
from jobline_server.rpc.limits import (
    CONNECTION_CALLS_MAX,
    MESSAGE_SLACK_BYTES,
    PUSH_BYTES_MAX,
    UNTAKEN_CALLS_MAX,
    UNTAKEN_SECONDS_MAX,
)
from jobline_server.rpc.one_message import reading

TransportName = Literal["grpcio", "native"]

NATIVE_MODULE = "pygrpc_native"
# What it makes for the streams behind it, in the folder for temporary files.
LEFTOVERS = "pygrpc-native-*/fallback.sock"
LEFTOVER_SECONDS = 60.0
UNIX = "unix:"
# The kernel's limit on the path of a socket.
UNIX_PATH_BYTES_MAX = 107


class CannotServe(Exception):
    """The server cannot be reached in the way it was told to; it does not start."""


@dataclass(frozen=True, slots=True)
class Serving:
    """Servers that were started, and the addresses they are reached at."""

    transport: TransportName
    addresses: list[str]
    servers: list[aio.Server] = field(repr=False)

    async def stop(self, grace_seconds: float) -> None:
        """Takes no more calls, gives those in flight so long, then cancels them."""
        for server in self.servers:
            await server.stop(grace_seconds)


def choose_transport(wanted: Literal["grpcio", "native", "auto"]) -> TransportName:
    """What `auto` means here, and whether `native` is there."""
    installed = find_spec(NATIVE_MODULE) is not None
    if wanted == "auto":
        return "native" if installed else "grpcio"
    if wanted == "native" and not installed:
        raise CannotServe(
            "transport = native needs the extra: pip install 'jobline-server[native]'"
        )
    return wanted


async def serve(
    transport: TransportName,
    handlers: Mapping[str, Handler],
    listen: Sequence[str],
    *,
    payload_bytes_max: int,
    admission: Admission,
) -> Serving:
    """Starts serving on all addresses, `HOST:PORT` or `unix:PATH`; port 0 picks one."""
    for address in listen:
        check_address(address)
    options = channel_options(payload_bytes_max)
    if transport == "native":
        return await serve_native(handlers, listen, options, admission)
    return await serve_grpcio(handlers, listen, options)


async def serve_grpcio(
    handlers: Mapping[str, Handler], listen: Sequence[str], options: list[tuple[str, int]]
) -> Serving:
    """One grpc.aio server for all addresses."""
    server = aio.server(options=[*options, ("grpc.max_concurrent_streams", CONNECTION_CALLS_MAX)])
    server.add_generic_rpc_handlers([HandlerTable(with_written_replies(handlers))])
    addresses = [_bind(server, address) for address in listen]
    await server.start()
    return Serving("grpcio", addresses, [server])


async def serve_native(
    handlers: Mapping[str, Handler],
    listen: Sequence[str],
    options: list[tuple[str, int]],
    admission: Admission,
) -> Serving:
    """One native server an address: it takes one port each."""
    # Imported here because it is an extra.
    import pygrpc_native.aio as native  # noqa: PLC0415

    unary, streams = split(handlers)
    servers: list[aio.Server] = []
    addresses = []
    for address in listen:
        made = native.server(options=options)
        made._front_args["metrics"] = True  # noqa: SLF001  # `unread` asks for them
        server: aio.Server = made
        for service, methods in unary.items():
            server.add_registered_method_handlers(service, methods)
        server.add_generic_rpc_handlers([HandlerTable(streams)])
        addresses.append(_bind(server, address))
        listen_to_front(server, admission)
        servers.append(server)
    for server in servers:
        await server.start()
    clear_leftovers(Path(tempfile.gettempdir()))
    return Serving("native", addresses, servers)


def clear_leftovers(directory: Path) -> None:
    """Removes the sockets that native servers which were killed have left, each in a folder of its
    own: where nobody listens, and long enough for somebody who has only just begun.
    """
    with suppress(OSError):
        newest = max((path.stat().st_mtime for path in directory.glob(LEFTOVERS)), default=0.0)
        for path in directory.glob(LEFTOVERS):
            with suppress(OSError):
                is_old = path.stat().st_mtime < newest - LEFTOVER_SECONDS
                if is_old and path.is_socket() and not _somebody_listens(path):
                    path.unlink()
                    path.parent.rmdir()


class HandlerTable(grpc.GenericRpcHandler):
    """Handlers by path. Not registered method by method: the accept loop of grpc.aio waits on one
    task for each of those."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = {path: reading(handler) for path, handler in handlers.items()}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler | None:
        """The handler of a call, or None for a method that is not there."""
        return self._handlers.get(handler_call_details.method)


def split(
    handlers: Mapping[str, Handler],
) -> tuple[dict[str, dict[str, Handler]], dict[str, Handler]]:
    """Unary handlers by service and method, and all others by path. Server streams are among the
    others: on the native server a caller that does not read would hold a thread."""
    unary: dict[str, dict[str, Handler]] = {}
    streams: dict[str, Handler] = {}
    for path, handler in handlers.items():
        if handler.request_streaming or handler.response_streaming:
            streams[path] = handler
        else:
            _, service, method = path.split("/")
            unary.setdefault(service, {})[method] = handler
    return unary, streams


def channel_options(payload_bytes_max: int) -> list[tuple[str, int]]:
    """Options of both transports."""
    return [
        ("grpc.max_receive_message_length", message_bytes_max(payload_bytes_max)),
        ("grpc.max_send_message_length", -1),
        # Two servers must never share a port unseen.
        ("grpc.so_reuseport", 0),
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
        # Go clients ping more often than grpc-core likes by default, and die of too_many_pings.
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        # grpc-core ends calls that the loop has not taken yet as CANCELLED, an indefinite code: at
        # random from 1,000 on by default, and after 30 s. Our own bound on calls is to be met.
        ("grpc.server.max_pending_requests", UNTAKEN_CALLS_MAX),
        ("grpc.server.max_pending_requests_hard_limit", UNTAKEN_CALLS_MAX),
        ("grpc.server_max_unrequested_time_in_server", UNTAKEN_SECONDS_MAX),
    ]


def message_bytes_max(payload_bytes_max: int) -> int:
    """The largest message that is taken."""
    return max(PUSH_BYTES_MAX, payload_bytes_max) + MESSAGE_SLACK_BYTES


def check_address(address: str) -> None:
    """Refuse an address that cannot be listened at."""
    if address.startswith(UNIX):
        path = Path(address.removeprefix(UNIX))
        if len(str(path).encode()) > UNIX_PATH_BYTES_MAX:
            raise CannotServe(f"{address}: a socket's path is at most {UNIX_PATH_BYTES_MAX} bytes")
        if not path.parent.is_dir():
            raise CannotServe(f"{address}: there is no folder {path.parent}")
        if path.exists() and not path.is_socket():
            raise CannotServe(f"{address}: there is a file that is not a socket")
        if _somebody_listens(path):
            raise CannotServe(f"{address}: another server listens there")
        return
    try:
        split_address(address)
    except ValueError as error:
        raise CannotServe(f"{address}: {error}; or unix:PATH") from None


def _somebody_listens(path: Path) -> bool:
    """Whether a socket belongs to a live server. Both transports would put one of their own in its
    place, and nobody would reach that server any more; what a killed one left may be replaced.
    """
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except BlockingIOError:  # its queue of connections is full
            return True
        except OSError:
            return False
    return True


def _check_can_listen(address: str) -> None:
    """Refuses a port that cannot be had, with the system's reason. gRPC would write lines of its
    own to stderr, past the log, and tell no reason.
    """
    host, port = split_address(address)
    failure: OSError | None = None
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except OSError as error:
        found, failure = [], error
    for family, kind, protocol, _, place in found:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(place)
            except OSError as error:
                failure = error
            else:
                return
    why = (failure.strerror or str(failure)).lower() if failure else "no such host"
    is_taken = failure is not None and failure.errno == errno.EADDRINUSE
    advice = "; is another server on it?" if is_taken else ""
    raise CannotServe(f"{address}: cannot listen there ({why}){advice}")


def _bind(server: aio.Server, address: str) -> str:
    if not address.startswith(UNIX):
        _check_can_listen(address)
    try:
        port = server.add_insecure_port(address)
    except RuntimeError:
        port = 0
    if port == 0:
        raise CannotServe(f"{address}: cannot listen there; is another server on it?")
    if address.startswith(UNIX):
        return address
    return f"{address.rpartition(':')[0]}:{port}"
