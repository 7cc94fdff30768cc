"""Handshakes: a few are begun in each iteration of the loop, so that a crowd does not stop it.

A handshake is a signature, some milliseconds of the processor. After a restart all workers come at
once, and a loop that began with all of them would stand still for seconds, and with it calls,
leases and the probes of whoever kills servers that do not answer. So a connection stays in the
kernel until its first bytes are there, and then waits here for its turn.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Awaitable, Callable

from jobline_server.auth.handshake_failures import reason_of
from jobline_server.auth.tls_files import HANDSHAKE_SECONDS
from jobline_server.telemetry.few_lines import FewLines
from jobline_server.telemetry.log import logger

LOG = logger("tls")

BACKLOG = 2_048
# Connections that are taken from the kernel in one iteration, and handshakes that begin in one.
ACCEPTED_AT_ONCE = 256
BEGUN_AT_ONCE = 8
# Until it tries again to take connections, where there was no descriptor for one.
AGAIN_SECONDS = 1.0

Begin = Callable[[socket.socket], Awaitable[object]]


class Handshakes:
    """Takes the connections of a listener. `begin` gets each, does its handshake, and raises
    OSError where there is none.
    """

    def __init__(self, listener: socket.socket, begin: Begin) -> None:
        self._listener = listener
        self._begin = begin
        self._turns: deque[asyncio.Future[None]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._again: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._lines = FewLines(self._loop.time)

    def start(self) -> None:
        """Starts taking connections."""
        self._listener.listen(BACKLOG)
        self._watch()

    async def stop(self) -> None:
        """Takes no more, and ends those whose handshake is not over."""
        if self._again is not None:
            self._again.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _watch(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no more descriptors: new connections wait
                LOG.warning("no connection can be taken", why=error.strerror or str(error))
                self._loop.remove_reader(self._listener)
                self._again = self._loop.call_later(AGAIN_SECONDS, self._watch)
                return
            accepted.setblocking(False)
            task = self._loop.create_task(self._serve(accepted, address))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, accepted: socket.socket, address: tuple[str, int]) -> None:
        is_begun = False
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                await self._first_bytes(accepted)
            await self._turn()
            is_begun = True
            await self._begin(accepted)
        except ssl.SSLError as error:
            left_out = self._lines.next()
            if left_out is not None:
                why, peer = reason_of(error), peer_name(address)
                LOG.warning("a handshake failed", reason=why, peer=peer, left_out=left_out)
        except OSError:  # nothing came in time, or the caller went away
            pass
        finally:
            if not is_begun:
                accepted.close()

    async def _first_bytes(self, accepted: socket.socket) -> None:
        """Waits until something is to be read, which is left where it is."""
        came = asyncio.Event()
        self._loop.add_reader(accepted, came.set)
        try:
            await came.wait()
        finally:
            self._loop.remove_reader(accepted)

    async def _turn(self) -> None:
        turn = self._loop.create_future()
        self._turns.append(turn)
        if len(self._turns) == 1:
            self._loop.call_soon(self._begin_some)
        await turn

    def _begin_some(self) -> None:
        for _ in range(min(BEGUN_AT_ONCE, len(self._turns))):
            turn = self._turns.popleft()
            if not turn.done():
                turn.set_result(None)
        if self._turns:
            self._loop.call_soon(self._begin_some)


def peer_name(address: tuple[str, int]) -> str:
    """Returns the address of a caller, as gRPC writes it."""
    host = address[0].removeprefix("::ffff:")
    return f"ipv6:[{host}]:{address[1]}" if ":" in host else f"ipv4:{host}:{address[1]}"
