"""The process: one server in one loop, from the first line of its log to its exit code.

    SIGTERM or SIGINT   stop politely; the second one hastens
    the storage failed  stop at once with exit code 1: memory must not answer for a disk

Whoever started the process reads one line on stdout when it is ready: where it is reached.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import uvloop
from google.protobuf.internal import api_implementation

from jobline_server import memory
from jobline_server.app import VERSION, Server
from jobline_server.config import ConfigurationError, Settings
from jobline_server.notify import READY, STOPPING, notify
from jobline_server.rpc.listening import CannotServe
from jobline_server.runtime.core import Core
from jobline_server.storage.store import DataLoss, DiskFull, StoreRefused
from jobline_server.telemetry.log import configure_logging, logger
from jobline_server.web.server import CannotListen

LOG = logger("app")

EXIT_STOPPED = 0
EXIT_STORAGE_FAILED = 1
EXIT_CANNOT_START = 2

# What a start needs at most, beside what it recovers: a row a shard, and two write-ahead logs.
START_MIB = 16

# The parser written in C; the one in Python is forty times slower.
PROTOBUF = "upb"

# Why a server did not start, in words for whoever started it; anything else is a bug.
CANNOT_START = (ConfigurationError, CannotServe, CannotListen, StoreRefused, DataLoss)
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

Announce = Callable[[Server], None]


def run(settings: Settings, announce: Announce | None = None) -> int:
    """Runs a server until it is told to stop; returns the exit code."""
    configure_logging(settings.log_format, settings.log_level)
    make_loop = uvloop.new_event_loop if settings.uvloop else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=make_loop) as runner:
        return runner.run(serve_until_stopped(settings, announce or print_ready))


async def serve_until_stopped(settings: Settings, announce: Announce) -> int:
    """Starts, announces, waits for a signal or a failure, stops."""
    memory.tune()
    try:
        check_protobuf()
        server = Server(settings)
        await server.start()
    except Exception as error:  # whatever it was: a start that fails is said in one line
        LOG.critical("cannot start", why=why_not(error, settings))
        LOG.debug("the start failed", exc_info=error)
        return EXIT_CANNOT_START
    told_to_stop = _take_signals(server)
    memory.freeze()
    look_for_cycles(server.runtime.core)
    _announce(announce, server)
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        LOG.info("ready", addresses=server.addresses, http=server.http, version=VERSION)
    notify(READY)
    failed = server.runtime.failed
    stop = asyncio.create_task(told_to_stop.wait())
    awaited: set[asyncio.Future[Any]] = {stop, failed}
    await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if failed.done():
        LOG.critical("the storage failed", exc_info=failed.exception())
        server.hasten()
    else:
        notify(STOPPING)
        LOG.info("stopping", drain_seconds=settings.drain_seconds)
    await server.stop()
    memory.leave()
    if failed.done() and not failed.cancelled() and failed.exception() is not None:
        return EXIT_STORAGE_FAILED
    LOG.info("stopped")
    return EXIT_STOPPED


def look_for_cycles(core: Core) -> None:
    """Has the collector look between iterations of the loop; to be called in it."""
    looks = memory.Looks(asyncio.get_running_loop().time)
    core.listen("memory", lambda _turns: looks.turn_ended())
    # A thousand streams may open, and as many calls be answered, without a commit.
    core.heartbeat.on_heartbeat = looks.turn_ended


def why_not(error: Exception, settings: Settings) -> str:
    """Why a server did not start, in a line that says what to do where that is known."""
    if isinstance(error, DiskFull) or (isinstance(error, OSError) and error.errno in NO_ROOM):
        return (
            f"the disk of {settings.data} is full: make room on it, {START_MIB} MiB at least, and "
            "start again; of the directory itself nothing may be deleted"
        )
    if isinstance(error, CANNOT_START):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or settings.data}: {error.strerror.lower()}"
    return f"{type(error).__name__}: {error}; --log-level debug shows where"


def _announce(announce: Announce, server: Server) -> None:
    """Says that it is ready. That nobody reads it, or that there is no room for it, is no reason
    not to serve: the log says where the server is reached.
    """
    try:
        announce(server)
    except OSError as error:
        LOG.warning("the ready line could not be written", why=str(error))
        # What is left in the buffer would fail again when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_ready(server: Server) -> None:
    """The ready line, for whoever started the process: JSON, or on a terminal words."""
    if sys.stdout.isatty():
        http = f", http://{server.http}" if server.http else ""
        where = ", ".join(server.addresses)
        sys.stdout.write(f"Jobline {VERSION} is ready at {where}{http}; ^C stops it\n")
        sys.stdout.flush()
        return
    line = {
        "event": "ready",
        "grpc": server.addresses[0],
        "http": server.http,
        "addresses": server.addresses,
        "transport": server.transport,
        "version": VERSION,
        "pid": os.getpid(),
    }
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _take_signals(server: Server) -> asyncio.Event:
    """An event that the first SIGTERM or SIGINT sets; the second hastens."""
    told = asyncio.Event()

    def stop() -> None:
        if told.is_set():
            server.hasten()
        told.set()

    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop)
    return told


def check_protobuf() -> None:
    """Refuse to run on a parser that would make every target unreachable."""
    found = api_implementation.Type()
    if found != PROTOBUF:
        raise ConfigurationError(
            f"protobuf runs on {found} and not on {PROTOBUF}: install its wheel for this platform"
        )
