"""The two transports under the same handlers.

`grpcio` is the reference. `native` (the extra `jobline-server[native]`) serves unary calls through
HTTP/2 in Rust, several times faster; streams go through a grpcio server behind it. Handlers know
neither. A transport that cannot serve as configured fails at the start, never later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Literal, Protocol, cast

import grpc
from grpc import aio

from jobline._installing import how_to_install
from jobline_server.auth.tls_files import HANDSHAKE_SECONDS, Loaded, TlsFiles
from jobline_server.rpc.admission import Admission
from jobline_server.rpc.delivery import with_written_replies
from jobline_server.rpc.guard import Handler, UnaryAnswer
from jobline_server.rpc.limits import (
    CONNECTION_CALLS_MAX,
    HEALTH_BYTES_MAX,
    HEALTH_CALLS_MAX,
    MESSAGE_SLACK_BYTES,
    MESSAGES_BYTES_MAX,
    MESSAGES_MIN,
    PUSH_BYTES_MAX,
    UNTAKEN_CALLS_MAX,
    UNTAKEN_SECONDS_MAX,
)
from jobline_server.rpc.listening import UNIX, CannotServe, check_address, check_can_listen
from jobline_server.rpc.message_waits import MessageWaits
from jobline_server.rpc.one_message import reading
from jobline_server.rpc.slow_readers import ending_slow

TransportName = Literal["grpcio", "native"]

NATIVE_MODULE = "pygrpc_native"
HEALTH = "/grpc.health.v1.Health/"


class Server(Protocol):
    """A started server, on one address or several."""

    async def stop(self, grace_seconds: float, /) -> None:
        """Takes no more calls, waits up to `grace_seconds` for open ones, then cancels them."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A started transport, and its addresses."""

    transport: TransportName
    addresses: list[str]
    server: Server = field(repr=False)

    async def stop(self, grace_seconds: float) -> None:
        """Takes no more calls, waits up to `grace_seconds` for open ones, then cancels them."""
        await self.server.stop(grace_seconds)


def choose_transport(
    wanted: Literal["grpcio", "native", "auto"],
) -> TransportName:
    """Resolves `auto`; raises `CannotServe` for `native` where it is not installed."""
    installed = find_spec(NATIVE_MODULE) is not None
    if wanted == "auto":
        return "native" if installed else "grpcio"
    if wanted == "native" and not installed:
        raise CannotServe(
            "transport = native needs the extra: install it "
            + how_to_install("jobline-server", "native")
        )
    return wanted


async def serve(
    transport: TransportName,
    handlers: Mapping[str, Handler],
    listen: Sequence[str],
    *,
    payload_bytes_max: int,
    admission: Admission,
    reads_metadata: bool = False,
    tls: TlsFiles | None = None,
) -> Serving:
    """Starts serving at all addresses, `HOST:PORT` or `unix:PATH`; port 0 picks a free one.
    `reads_metadata`: handlers want the metadata of calls, which costs the native transport. `tls`:
    for ports, not for sockets.
    """
    for address in listen:
        check_address(address)
    options = channel_options(payload_bytes_max)
    if transport == "native":
        return await serve_native(
            handlers, listen, options, admission, reads_metadata=reads_metadata, tls=tls
        )
    options.append(("grpc.max_concurrent_streams", CONNECTION_CALLS_MAX))
    return await serve_grpcio(handlers, listen, options, tls)


async def serve_grpcio(
    handlers: Mapping[str, Handler],
    listen: Sequence[str],
    options: list[tuple[str, int]],
    tls: TlsFiles | None = None,
    others: Sequence[grpc.GenericRpcHandler] = (),
) -> Serving:
    """Starts one grpc.aio server for all addresses. `others` are asked for other methods."""
    credentials = None if tls is None else server_credentials(tls)
    server = aio.server(options=options)
    table = HandlerTable(with_written_replies(ending_slow(handlers)), options)
    server.add_generic_rpc_handlers([table, *others])

    def listened(address: str) -> int:
        if credentials is None or address.startswith(UNIX):
            return server.add_insecure_port(address)
        return server.add_secure_port(address, credentials)

    addresses = [_bound(address, listened) for address in listen]
    await server.start()
    return Serving("grpcio", addresses, server)


async def serve_health(handlers: Mapping[str, Handler], address: str) -> Serving:
    """Starts a plaintext port with the health service alone, for probes."""
    check_address(address)
    only = {path: one for path, one in handlers.items() if path.startswith(HEALTH)}
    # Anybody may call it, so a connection has no more than probes need. gRPC refuses a larger
    # message by its length, before it comes.
    bounds = {
        "grpc.max_receive_message_length": HEALTH_BYTES_MAX,
        "grpc.max_concurrent_streams": HEALTH_CALLS_MAX,
    }
    options = [*(dict(channel_options(0)) | bounds).items()]
    return await serve_grpcio(only, [address], options, others=[HealthAlone()])


def server_credentials(tls: TlsFiles) -> grpc.ServerCredentials:
    """Returns credentials that use for each new connection what was read last."""
    given = tls.now

    def configuration(loaded: Loaded) -> grpc.ServerCertificateConfiguration:
        pairs = [(loaded.key, loaded.certificate)]
        return grpc.ssl_server_certificate_configuration(pairs, loaded.client_ca or None)

    def fetch() -> grpc.ServerCertificateConfiguration | None:
        # A thread of gRPC calls this.
        nonlocal given
        if tls.now is given:
            return None
        given = tls.now
        return configuration(given)

    return grpc.dynamic_ssl_server_credentials(
        configuration(given),
        fetch,  # type: ignore[arg-type]  # None is no change, which its type does not know
        require_client_authentication=tls.asks_clients,
    )


async def serve_native(
    handlers: Mapping[str, Handler],
    listen: Sequence[str],
    options: list[tuple[str, int]],
    admission: Admission,
    *,
    reads_metadata: bool,
    tls: TlsFiles | None = None,
) -> Serving:
    """Starts a native port per address, with `tls` behind a door, and one grpc.aio server for the
    streams of all.
    """
    # Imported here because it is an extra.
    from jobline_server.rpc.native_server import NativeServer  # noqa: PLC0415

    unary, others = split(handlers)
    server = NativeServer(unary, dict(options), admission, tls, reads_metadata=reads_metadata)
    try:
        addresses = [_bound(address, server.listen) for address in listen]
    except CannotServe:
        server.discard()
        raise
    streams = aio.server(options=options)
    table = HandlerTable(server.known_callers(ending_slow(others)), options)
    streams.add_generic_rpc_handlers([table])
    await server.start(streams, lambda: table.was_used)
    return Serving("native", addresses, server)


class HandlerTable(grpc.GenericRpcHandler):
    """Handlers by path. They are not registered one by one, because the accept loop of grpc.aio
    waits on one task per registered method.
    """

    def __init__(self, handlers: Mapping[str, Handler], options: Sequence[tuple[str, int]]) -> None:
        waits = MessageWaits(messages_max(dict(options)["grpc.max_receive_message_length"]))
        self._handlers = {path: reading(handler, waits) for path, handler in handlers.items()}
        self.was_used = False

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler | None:
        """Returns the handler of a call; None for an unknown method."""
        self.was_used = True
        return self._handlers.get(handler_call_details.method)


class HealthAlone(grpc.GenericRpcHandler):
    """Refuses all calls with what is wrong: the address of the probes was taken for the other."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler:
        """Returns a handler for whatever is called."""
        return grpc.stream_stream_rpc_method_handler(_refuse)


async def _refuse(_requests: object, context: aio.ServicerContext[bytes, bytes]) -> None:
    await context.abort(
        grpc.StatusCode.UNIMPLEMENTED, "this port serves health alone: give the gRPC port"
    )


def split(
    handlers: Mapping[str, Handler],
) -> tuple[dict[str, UnaryAnswer], dict[str, Handler]]:
    """Returns the functions of unary calls, by path, and all other handlers. Server streams are
    among the others: on a native port, a caller that does not read would hold a thread.
    """
    unary: dict[str, UnaryAnswer] = {}
    streams: dict[str, Handler] = {}
    for path, handler in handlers.items():
        if handler.request_streaming or handler.response_streaming:
            streams[path] = handler
        else:
            unary[path] = cast("UnaryAnswer", handler.unary_unary)
    return unary, streams


def channel_options(payload_bytes_max: int) -> list[tuple[str, int]]:
    """Returns the options of both transports."""
    return [
        ("grpc.max_receive_message_length", message_bytes_max(payload_bytes_max)),
        ("grpc.max_send_message_length", -1),
        # Two servers must never share a port by accident.
        ("grpc.so_reuseport", 0),
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        # Else a connection may take two minutes to say anything.
        ("grpc.server_handshake_timeout_ms", round(HANDSHAKE_SECONDS * 1_000)),
        ("grpc.keepalive_permit_without_calls", 1),
        # Go clients ping more often than grpc-core likes by default, and die of too_many_pings.
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        # grpc-core ends calls that the loop has not taken yet as CANCELLED, an indefinite code: at
        # random from 1,000 on by default, and after 30 s. Our own bound must be hit first.
        ("grpc.server.max_pending_requests", UNTAKEN_CALLS_MAX),
        ("grpc.server.max_pending_requests_hard_limit", UNTAKEN_CALLS_MAX),
        ("grpc.server_max_unrequested_time_in_server", UNTAKEN_SECONDS_MAX),
    ]


def message_bytes_max(payload_bytes_max: int) -> int:
    """Returns the size of the largest request."""
    return max(PUSH_BYTES_MAX, payload_bytes_max) + MESSAGE_SLACK_BYTES


def messages_max(message_bytes_max: int) -> int:
    """Returns how many messages may be under way for long: as many as may be in service."""
    return max(MESSAGES_MIN, MESSAGES_BYTES_MAX // message_bytes_max)


def _bound(address: str, listen: Callable[[str], int]) -> str:
    """Returns the address with the port that `listen` got."""
    if not address.startswith(UNIX):
        check_can_listen(address)
    port = 0
    with suppress(RuntimeError, OSError):
        port = listen(address)
    if port == 0:
        raise CannotServe(f"{address}: cannot listen there; is another server on it?")
    if address.startswith(UNIX):
        return address
    return f"{address.rpartition(':')[0]}:{port}"
