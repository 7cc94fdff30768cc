"""`jobline_server.embedded`: the whole server within a program, for programs that are small."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from jobline import AsyncClient
from jobline_server.app import Server
from jobline_server.config import load_settings
from jobline_server.rpc.listening import UNIX_PATH_BYTES_MAX

SOCKET = "jobline.sock"
# No ports, and no reserve on the disk of a program that needs none.
EMBEDDED: dict[str, Any] = {
    "listen": "",
    "http": "",
    "transport": "grpcio",
    "ballast_bytes": 0,
    "low_space_bytes": 0,
    "drain_seconds": 5,
}


@asynccontextmanager
async def embedded(path: str | PathLike[str], **settings: Any) -> AsyncIterator[AsyncClient]:
    """Runs a server on a directory for the length of the block, in this process and its event loop;
    yields a client of it.

    Everything is as with `jobline serve`: what was acknowledged is on disk, and the next block on
    the same `path` goes on with it. Workers reach it at `client.target`, a Unix socket in the
    directory, and so do other threads and processes that may write to that directory:

        async with embedded("jobs") as client:
            worker = Worker(client.target, [resize])

    `settings` are those of `jobline serve` by name, over those of the environment (JOBLINE_…); the
    default is no port of TCP, no HTTP, and no reserve on the disk. At the end of the block workers
    have `drain_seconds` (5) to finish.

    Its limits: one server per directory; the event loop is the program's, so what blocks it blocks
    the server; no garbage collector, signals or logging are set up (it logs to `jobline.…` of the
    standard library); the program's end is that of the server, so end the block properly. Linux and
    macOS. Raises `ConfigurationError`, `StoreRefused` if another server has the directory, and
    `CannotServe`.
    """
    data = Path(path)
    async with AsyncExitStack() as stack:
        address = f"unix:{_socket_of(data, stack)}"
        flags = {**EMBEDDED, "unix_socket": address.removeprefix("unix:"), "data": data, **settings}
        await asyncio.to_thread(data.mkdir, parents=True, exist_ok=True)
        server = Server(load_settings(flags))
        await server.start()
        stack.push_async_callback(server.stop)
        yield await stack.enter_async_context(AsyncClient(server.addresses[-1]))


def _socket_of(data: Path, stack: AsyncExitStack) -> Path:
    """Returns where the socket is: elsewhere if the directory's path is too long for one."""
    socket = data.absolute() / SOCKET
    if len(str(socket).encode()) <= UNIX_PATH_BYTES_MAX:
        return socket
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="jobline-"))
    return Path(folder) / SOCKET
