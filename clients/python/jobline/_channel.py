"""How a channel to a server is set up: its options, and which calls gRPC may repeat by itself."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from ipaddress import AddressValueError, IPv6Address
from typing import Any
from weakref import WeakSet

import grpc
from grpc import aio

from jobline._arguments import refuse
from jobline._requests import MESSAGE_BYTES_MAX
from jobline.errors import ErrorFacts, FailedPrecondition, InvalidArgument

# The address of a server, unless an argument or JOBLINE_SERVER overrides it.
DEFAULT_TARGET = "localhost:7070"


# Calls that change nothing, or nothing more when they are repeated (a lease is settled once, a pull
# carries a request id). `Push` is not among them: the client repeats it itself, for longer
# and on more codes, under one request id.
_SAFE_CALLS = {
    "JobService": ["Pull", "Ack", "Fail", "Release", "Extend"],
    "JobAdminService": ["GetJob", "ListJobs", "ExplainJob"],
    "QueueService": [
        *("ListQueues", "GetQueue", "GetQueueHistory"),
        *("UpdateQueue", "PauseQueue", "ResumeQueue"),
    ],
    "LimiterService": ["UpsertLimiter", "GetLimiter", "ListLimiters", "EmptyLimiter"],
    "ScheduleService": [
        *("GetSchedule", "ListSchedules", "PreviewSchedule"),
        *("UpdateSchedule", "PauseSchedule", "ResumeSchedule"),
    ],
    "WebhookService": [
        *("GetWebhook", "ListWebhooks", "ListWebhookDeliveries"),
        "UpdateWebhook",
    ],
    "BatchService": ["CreateBatch", "CloseBatch", "GetBatch", "ListBatches", "CancelBatch"],
    "FlowService": ["PushFlow", "GetFlow"],
    "DeadLetterService": ["ListDeadJobs", "GetDeadLetterStats"],
    "AdminService": ["GetBackup", "GetStats", "ListOperations", "ListWorkers"],
}

SERVICE_CONFIG = {
    "methodConfig": [
        {
            "name": [
                {"service": f"jobline.v1.{service}", "method": method}
                for service, methods in _SAFE_CALLS.items()
                for method in methods
            ],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.1s",
                "maxBackoff": "2s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}

OPTIONS: list[tuple[str, str | int]] = [
    ("grpc.service_config", json.dumps(SERVICE_CONFIG)),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    # gRPC's own defaults wait up to two minutes before it tries a restarted server.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 3_000),
    # Finds a dead connection under calls that wait long, and within a lease of usual length; the
    # server permits a ping every 10 s.
    ("grpc.keepalive_time_ms", 15_000),
    ("grpc.keepalive_timeout_ms", 10_000),
]

# Targets that gRPC understands by themselves (https://grpc.github.io/grpc/core/md_doc_naming.html).
_OF_GRPC = re.compile(r"(dns|unix|unix-abstract|vsock|ipv4|ipv6|xds):.")
_HOST = re.compile(r"[^\s:/@?#\[\]]+")
_PORT_MAX = 65_535

_KEY = re.compile(r"[a-z0-9_.-]+")

# A worker's stream must never share a broken connection with the one before it.
OWN_CONNECTION = ("grpc.use_local_subchannel_pool", 1)

# Channels of this process. Those that came to a child through a fork are kept there for good:
# a channel that is destroyed shuts its connection down, which is the parent's.
_open: WeakSet[grpc.Channel | aio.Channel] = WeakSet()
_inherited: list[grpc.Channel | aio.Channel] = []


def _keep_inherited() -> None:
    _inherited.extend(_open)
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_inherited)


def _options(*more: tuple[str, str | int]) -> list[tuple[str, str | int]]:
    """Returns the options of a channel. Channels with the same options share a connection: one
    option names the process, so that a child never shares one with its parent.
    """
    return [*OPTIONS, *more, ("jobline.process", os.getpid())]


def open_channel(
    target: str, credentials: grpc.ChannelCredentials | None, *, own_connection: bool = False
) -> grpc.Channel:
    """Opens a channel for blocking calls; plaintext without credentials."""
    options = _options(OWN_CONNECTION) if own_connection else _options()
    if credentials is None:
        channel = grpc.insecure_channel(target, options=options)
    else:
        channel = grpc.secure_channel(target, credentials, options=options)
    _open.add(channel)
    return channel


def open_aio_channel(target: str, credentials: grpc.ChannelCredentials | None) -> aio.Channel:
    """Opens a channel for the running event loop; plaintext without credentials.

    Raises FailedPrecondition in a child whose parent had one at the fork: the thread that serves
    gRPC's asyncio side did not come along, and every call would wait for ever.
    """
    if any(isinstance(channel, aio.Channel) for channel in _inherited):
        raise FailedPrecondition(
            "this process was forked while an AsyncClient was connected, which gRPC does not "
            "survive: connect after the fork, or use Client"
        )
    if credentials is None:
        channel = aio.insecure_channel(target, options=_options())
    else:
        channel = aio.secure_channel(target, credentials, options=_options())
    _open.add(channel)
    return channel


def target_of(target: str | None) -> str:
    """Returns a target as gRPC needs it; by default that of JOBLINE_SERVER, else `localhost:7070`.

    Raises InvalidArgument for what is not HOST:PORT. gRPC itself would use port 443, or
    fail each call for an unknown host. Targets of other kinds (`unix:/path`,
    `dns:///name`) are left to gRPC.
    """
    origin = ""
    if target is None:
        target = os.environ.get("JOBLINE_SERVER") or DEFAULT_TARGET
        origin = "JOBLINE_SERVER: "
    why = _misfit(target)
    if why:
        raise InvalidArgument(f"{origin}{why}", ErrorFacts(fields={"target": why}))
    return target


def _misfit(target: Any) -> str:
    """Returns what is wrong with an address, and what to write instead; "" if nothing is."""
    if not isinstance(target, str):
        kind = type(target).__name__
        return f"the server's address is text, as in '{DEFAULT_TARGET}', and not of type {kind}"
    given = f"the server's address {target!r}"
    if not target:
        return (
            "the server's address is empty: give HOST:PORT, or None for JOBLINE_SERVER and then "
            f"{DEFAULT_TARGET}"
        )
    if _OF_GRPC.match(target):
        return ""
    if "/" in target:
        return f"{given} is not HOST:PORT alone: write it as in {DEFAULT_TARGET}"
    if target.count(":") > 1 and "[" not in target:
        return f"{given} is an IPv6 address without brackets: write it as in [::1]:7070"
    host, colon, port = target.rpartition(":")
    if not colon or target.endswith("]"):
        return f"{given} has no port: write {target}:7070"
    if not host:
        return f"{given} has no host: write localhost{target}"
    if not (_HOST.fullmatch(host) or _is_ipv6(host)):
        return f"{given} is not HOST:PORT: {host!r} is no name of a host, nor an address"
    if not (port.isascii() and port.isdigit() and 0 < int(port) <= _PORT_MAX):
        return f"{given} is not HOST:PORT: a port is 1 … {_PORT_MAX}, as in {host}:7070"
    return ""


def _is_ipv6(host: str) -> bool:
    """Returns whether a host is an IPv6 address in its brackets."""
    try:
        IPv6Address(host[1:-1])
    except AddressValueError:
        return False
    return host.startswith("[") and host.endswith("]")


def credentials_of(
    credentials: grpc.ChannelCredentials | None,
) -> grpc.ChannelCredentials | None:
    """Returns the credentials. Raises InvalidArgument for anything else, such as a token."""
    given: object = credentials
    if given is not None and not isinstance(given, grpc.ChannelCredentials):
        kind = type(given).__name__  # not the value, which may be a secret
        refuse(
            "credentials",
            f"must be those of a channel, not of type {kind}: write "
            "grpc.ssl_channel_credentials(); a token goes into metadata=",
        )
    return credentials


def metadata_of(metadata: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Returns metadata as gRPC needs it; keys are lower case on the wire.

    Raises InvalidArgument for what does not fit into a header: gRPC itself would fail each
    call with a message that names neither the key nor the value.
    """
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidArgument(f"metadata is a mapping of text to text, not {metadata!r}")
    found = tuple((key.lower(), value) for key, value in (metadata or {}).items())
    value: Any  # what is not typed may bring anything
    for key, value in found:
        if not _KEY.fullmatch(key) or key.endswith("-bin"):
            raise InvalidArgument(f"{key!r} is no key of metadata: use a-z, 0-9, - _ . alone")
        if not (isinstance(value, str) and value.isascii() and value.isprintable()):
            raise InvalidArgument(f"the metadata {key!r} must be printable ASCII text")
    return found
