"""The process: one server in one loop, from the first line of its log to its exit code.

    SIGTERM or SIGINT   stop gracefully; the second signal ends the wait for workers
    the storage failed  stop at once with exit code 1: no call may be answered from memory alone

When the server is ready, it prints one line on stdout with its addresses.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import uvloop
from google.protobuf.internal import api_implementation

from jobline._interrupts import INTERRUPTED, raise_interrupts
from jobline_server import descriptors, memory, scheduling
from jobline_server.app import VERSION, Server
from jobline_server.config import ConfigurationError, Settings
from jobline_server.doors import check_free
from jobline_server.notify import READY, STOPPING, notify
from jobline_server.rpc.listening import CannotServe
from jobline_server.runtime.core import Core
from jobline_server.storage.store import DataLoss, DiskFull, StoreRefused
from jobline_server.telemetry.log import configure_logging, flush_log, logger
from jobline_server.web.errors import CannotListen

LOG = logger("app")

EXIT_STOPPED = 0
EXIT_STORAGE_FAILED = 1
EXIT_CANNOT_START = 2

# The space a start needs at most: a row per shard, and two write-ahead logs.
START_MIB = 16

# The parser written in C; the one in Python is forty times slower.
PROTOBUF = "upb"

# Errors whose message tells the operator why the server did not start; any other is a bug.
CANNOT_START = (ConfigurationError, CannotServe, CannotListen, StoreRefused, DataLoss)
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class Runnable(Protocol):
    """A server, or several, one after the other."""

    @property
    def addresses(self) -> list[str]:
        """Those of gRPC."""

    @property
    def http(self) -> str:
        """That of HTTP; "" without."""

    @property
    def scheme(self) -> str:
        """That of HTTP: `http`, or `https` with TLS."""

    @property
    def transport(self) -> str:
        """The name of the transport of gRPC."""

    @property
    def failed(self) -> asyncio.Future[None]:
        """Fails when the storage did."""

    def with_core(self, call: Callable[[Core], None]) -> None:
        """Calls a function with the core of each server."""

    async def start(self) -> None:
        """Opens everything."""

    async def stop(self) -> None:
        """Closes everything."""

    def hasten(self) -> None:
        """Ends the time that `stop` gives workers to finish."""


# It takes what `make` has made.
Announce = Callable[[Any], None]


def run(
    settings: Settings,
    announce: Announce | None = None,
    *,
    make: Callable[[Settings], Runnable] = Server,
    until_eof: bool = False,
) -> int:
    """Runs a server until a signal or a failure, with `until_eof` also until the end of stdin;
    returns the exit code. SIGINT during the start ends that.
    """
    configure_logging(settings.log_format, settings.log_level)
    make_loop = uvloop.new_event_loop if settings.uvloop else asyncio.new_event_loop
    work = serve_until_stopped(settings, announce or print_ready, make=make, until_eof=until_eof)
    try:
        with suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=make_loop) as runner:
            # They ended the process while modules were imported; the runner takes them from here.
            raise_interrupts()
            return runner.run(work)
        return INTERRUPTED
    finally:
        flush_log()


async def serve_until_stopped(
    settings: Settings,
    announce: Announce,
    *,
    make: Callable[[Settings], Runnable] = Server,
    until_eof: bool = False,
) -> int:
    """Starts a server, announces it, waits for a signal or a failure, and stops it."""
    memory.tune()
    descriptors.raise_limit(settings.max_connections)
    if settings.dedicated_cpu:
        scheduling.run_threads_in_batches()
    try:
        check_protobuf()
        if is_new(settings.data):
            check_free(settings)
        server = make(settings)
        await server.start()
    except Exception as error:  # any failure of a start is logged in one line
        LOG.critical("cannot start", why=why_not(error, settings))
        LOG.debug("the start failed", exc_info=error)
        return EXIT_CANNOT_START
    stop_requested = _take_signals(server)
    if until_eof:
        _stop_at_eof(stop_requested)
    memory.freeze()
    if settings.dedicated_cpu:
        scheduling.favour_loop()
    server.with_core(collect_cycles)
    _announce(announce, server)
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        LOG.info("ready", addresses=server.addresses, http=server.http, version=VERSION)
    notify(READY)
    failed = server.failed
    await _either(stop_requested, failed)
    if failed.done():
        LOG.critical("the storage failed", exc_info=failed.exception())
        server.hasten()
    else:
        notify(STOPPING)
        LOG.info("stopping", drain_seconds=settings.drain_seconds)
    await server.stop()
    memory.skip_last_collection()
    if failed.done() and not failed.cancelled() and failed.exception() is not None:
        return EXIT_STORAGE_FAILED
    LOG.info("stopped")
    return EXIT_STOPPED


async def _either(stop_requested: asyncio.Event, failed: asyncio.Future[None]) -> None:
    """Waits for a signal or a failure."""
    # SIGINT in the last step of the start has cancelled this task, which does not know it yet: the
    # wait ends at once. The server must be stopped all the same, or its threads would keep the
    # process for ever.
    task = asyncio.current_task()
    is_interrupted = task is not None and task.cancelling() > 0
    stop = asyncio.create_task(stop_requested.wait())
    awaited: set[asyncio.Future[Any]] = {stop, failed}
    try:
        await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        if not is_interrupted:
            raise
    stop.cancel()


def is_new(directory: Path) -> bool:
    """Returns whether a store would be made in a directory: a start that can serve nowhere makes
    none.
    """
    try:
        return next(directory.iterdir(), None) is None
    except FileNotFoundError:
        return True
    except OSError:  # the start will say what is wrong with it
        return False


def collect_cycles(core: Core) -> None:
    """Runs the garbage collector after commits and at heartbeats; call it in the loop."""
    collector = memory.CycleCollector(asyncio.get_running_loop().time)
    core.listen("memory", lambda _batches: collector.collect_if_due(), is_vital=False)
    # A thousand streams may open, and as many calls be answered, without a commit.
    core.heartbeat.on_heartbeat = collector.collect_if_due


def why_not(error: Exception, settings: Settings) -> str:
    """Returns why a server did not start, in one line, with what to do where that is known."""
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


def _announce(announce: Announce, server: Runnable) -> None:
    """Writes the ready line. The server also runs if that fails (no reader, no space): the log has
    the addresses too.
    """
    try:
        announce(server)
    except OSError as error:
        LOG.warning("the ready line could not be written", why=str(error))
        # The rest of the buffer would fail again at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_ready(server: Runnable, *, as_json: bool = False, **more: str) -> None:
    """Prints the ready line: JSON, or words on a terminal unless told otherwise. `more`: what else
    the JSON has.
    """
    if sys.stdout.isatty() and not as_json:
        http = f", {server.scheme}://{server.http}" if server.http else ""
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
        **more,
    }
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _take_signals(server: Runnable) -> asyncio.Event:
    """Returns an event that the first SIGTERM or SIGINT sets; the second hastens the stop."""
    requested = asyncio.Event()

    def stop() -> None:
        if requested.is_set():
            server.hasten()
        requested.set()

    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop)
    return requested


def _stop_at_eof(requested: asyncio.Event) -> None:
    """Sets the event when stdin ends: when the program that started this one ends, however."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        # A thread, as not every stdin can be watched by a loop.
        with suppress(OSError, ValueError):
            while os.read(0, 1 << 16):
                pass
        with suppress(RuntimeError):  # the loop was closed
            loop.call_soon_threadsafe(requested.set)

    threading.Thread(target=read, name="jobline-stdin", daemon=True).start()


def check_protobuf() -> None:
    """Refuses to run on the slow parser."""
    found = api_implementation.Type()
    if found != PROTOBUF:
        raise ConfigurationError(
            f"protobuf runs on {found} and not on {PROTOBUF}: install its wheel for this platform"
        )
