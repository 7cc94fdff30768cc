"""The native transport: its ports, the doors before those that have TLS, and behind all of them a
grpc.aio server for streams, on a socket in a folder of its own.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from grpc import aio

from jobline_server.auth.tls_files import TlsFiles
from jobline_server.rpc.admission import Admission
from jobline_server.rpc.guard import Handler, UnaryAnswer
from jobline_server.rpc.listening import UNIX, CannotServe, check_address, has_listener
from jobline_server.rpc.native import NativePort
from jobline_server.rpc.tls.callers import UNKNOWN_PEER, DoorCaller, DoorCallers
from jobline_server.rpc.tls.door import TlsDoor

FOLDER = "jobline-native-"
SOCKET = "streams.sock"
LEFTOVER_SECONDS = 60.0
# The bytes passed on from the server of streams are not counted; its threads need less than this.
PASSING_ON_SECONDS = 0.1


class NativeServer:
    """Serves unary calls by `answers`; all else goes to `streams`, by `start`. `tls`: for ports,
    not for sockets. `reads_metadata`: handlers want the metadata of calls. Raises `CannotServe`
    where its sockets cannot be made.
    """

    def __init__(
        self,
        answers: Mapping[str, UnaryAnswer],
        options: Mapping[str, int],
        admission: Admission,
        tls: TlsFiles | None,
        *,
        reads_metadata: bool,
    ) -> None:
        self._answers = answers
        self._options = options
        self._admission = admission
        self._tls = tls
        self._reads_metadata = reads_metadata
        self._folder = Path(tempfile.mkdtemp(prefix=FOLDER))
        self._socket = self._folder / SOCKET
        self._ports: list[NativePort] = []
        self._doors: list[TlsDoor] = []
        self._has_port = self._has_socket = False
        self.callers = DoorCallers()
        # Those of doors have shorter names.
        try:
            check_address(f"{UNIX}{self._socket}")
        except CannotServe as error:
            raise self._elsewhere(error) from None

    def listen(self, address: str) -> int:
        """Adds an address; returns the number of its port. Raises OSError where it cannot."""
        is_socket = address.startswith(UNIX)
        self._has_socket |= is_socket
        self._has_port |= not is_socket
        if self._tls is None or is_socket:
            return self._add_port(address)
        behind = self._folder / f"door-{len(self._doors)}.sock"
        door = TlsDoor(address, self._tls, self.callers, behind)
        self._doors.append(door)
        self._add_port(f"{UNIX}{behind}", self.callers)
        return door.number

    def known_callers(self, streams: Mapping[str, Handler]) -> Mapping[str, Handler]:
        """Returns handlers of streams that know who calls, as far as it can be known. Call it when
        all addresses are added.
        """
        if not self._has_port:
            # All come by a Unix socket, which is what gRPC calls them.
            return streams
        # Where all come by TLS, one without a mark hides its caller. Beside a socket it may be one
        # of either.
        is_refused = self._doors and not self._has_socket
        return self.callers.around(streams, None if is_refused else DoorCaller(UNKNOWN_PEER))

    def _add_port(self, address: str, callers: DoorCallers | None = None) -> int:
        port = NativePort(
            address,
            self._answers,
            self._options,
            self._admission,
            reads_metadata=self._reads_metadata,
            callers=callers,
        )
        self._ports.append(port)
        return port.number

    async def start(self, streams: aio.Server, had_streams: Callable[[], bool]) -> None:
        """Starts serving. `had_streams`: whether that server had a call. Raises `CannotServe` where
        its socket cannot be made.
        """
        self._streams, self._had_streams = streams, had_streams
        try:
            streams.add_insecure_port(f"{UNIX}{self._socket}")
        except RuntimeError as error:
            raise self._elsewhere(error) from None
        await streams.start()
        for port in self._ports:
            port.start(self._socket)
        for door in self._doors:
            await door.open()
        clear_leftovers(self._folder.parent)

    def _elsewhere(self, error: Exception) -> CannotServe:
        self.discard()
        return CannotServe(f"{error}; set TMPDIR to another folder")

    def discard(self) -> None:
        """Removes the sockets."""
        for door in self._doors:
            door.discard()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def stop(self, grace_seconds: float) -> None:
        """Takes no more calls, waits up to `grace_seconds` for open ones, then cancels them.
        Callers get their replies before the connections end.
        """
        ending = [port.end_calls(grace_seconds) for port in self._ports]
        await asyncio.gather(self._streams.stop(grace_seconds), *ending)
        if self._had_streams():
            await asyncio.sleep(PASSING_ON_SECONDS)  # noqa: TID251  # there is no signal
        await asyncio.gather(*(port.close() for port in self._ports))
        await asyncio.gather(*(door.close() for door in self._doors))
        self.discard()


def clear_leftovers(directory: Path) -> None:
    """Removes the sockets and folders that killed servers left. Skips those with a listener, and
    new ones, whose server may just be starting.
    """
    with suppress(OSError):
        made_at = {path: path.stat().st_mtime for path in directory.glob(f"{FOLDER}*/{SOCKET}")}
        newest = max(made_at.values(), default=0.0)
        for path, at in made_at.items():
            if at < newest - LEFTOVER_SECONDS and path.is_socket() and not has_listener(path):
                with suppress(OSError):
                    for left in path.parent.iterdir():
                        left.unlink()
                    path.parent.rmdir()
