"""Looks up the names of hosts, on threads that nothing else waits for: neither the server's other
threads nor its end, when a name server is silent.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from threading import Thread

# Names that are looked up at the same time, and how long one waits for others.
LOOKUPS_MAX = 32
WAIT_SECONDS = 5.0


class TooManyLookups(Exception):
    """A name was not looked up, as too many others are."""


class Lookups:
    """Looks up names; each has a thread of its own while that lasts."""

    def __init__(self) -> None:
        self._room = asyncio.Semaphore(LOOKUPS_MAX)

    async def resolve(self, host: str, port: int) -> list[str]:
        """Returns the addresses of a host. Raises `TooManyLookups` if there is no room."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._room.acquire()
        except TimeoutError:
            raise TooManyLookups("too many names of other hosts are being looked up") from None
        loop = asyncio.get_running_loop()
        found: asyncio.Future[list[str]] = loop.create_future()

        def end(addresses: list[str], error: Exception | None) -> None:
            self._room.release()
            if found.done():
                return
            if error is not None:
                found.set_exception(error)
            else:
                found.set_result(addresses)

        def look_up() -> None:
            addresses: list[str] = []
            failed: Exception | None = None
            try:
                addresses = _addresses(host, port)
            except Exception as error:  # noqa: BLE001  # raised where it is awaited
                failed = error
            # The loop may be closed by now.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(end, addresses, failed)

        try:
            # At the end of the server nobody waits for a daemon.
            Thread(target=look_up, name="webhook-dns", daemon=True).start()
        except RuntimeError:
            self._room.release()
            raise
        return await found


def _addresses(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]
