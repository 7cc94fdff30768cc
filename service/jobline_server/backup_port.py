"""Makes the backups of a server: what is done in its process, and the other process beside it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from jobline_server.config import ConfigurationError, Settings
from jobline_server.history.destination import directory_of, is_in, without_credentials
from jobline_server.history.installed import check_installed
from jobline_server.runtime.backup_destination import (
    BackupFailed,
    CopyToFinish,
    Finisher,
    Step,
)
from jobline_server.runtime.backups import Backups, BackupSettings
from jobline_server.runtime.core import Core
from jobline_server.storage.copies import StoreCopies

FOLDER = "backup"
PROGRAM = "jobline_server.offline.backups.program"
# How much nicer than the server the other process is, which shares the processor with it.
NICENESS = 10


def check_destination(settings: Settings) -> None:
    """Raises `ConfigurationError` if backups would be made in the data directory, or if the URL
    needs what is not installed. Opens nothing.
    """
    to = settings.backup_to
    if to and is_in(to, settings.data):
        raise ConfigurationError(
            f"backup_to: {to} is in the data directory, and would be lost with it"
        )
    if not to or directory_of(to) is not None:
        return
    try:
        check_installed(to)
    except (ImportError, ValueError) as error:
        raise ConfigurationError(f"backup_to: {without_credentials(to)}: {error}") from None


def make_backups(
    core: Core, copies: StoreCopies | None, settings: Settings, version: str
) -> Backups | None:
    """Returns what makes backups, None without a destination."""
    to = settings.backup_to
    if not to or copies is None:
        return None
    others = OtherProcess(to, settings.backup_keep, version)
    return Backups(
        core,
        copies,
        BackupSettings(
            settings.data / FOLDER,
            without_credentials(to),
            int(settings.low_space_bytes),
            is_near=directory_of(to) is not None,
        ),
        Finisher(others.finish, others.newest_ms, others.take_away),
    )


class OtherProcess:
    """Checks, sends and looks for backups, a process each time."""

    def __init__(self, to: str, keep: int, version: str) -> None:
        self._to = to
        self._keep = keep
        self._version = version

    async def finish(self, copy: CopyToFinish, note: Step) -> int:
        """See `Finisher`."""
        wanted = {
            "name": copy.name,
            "at_ms": copy.at_ms,
            "server_version": self._version,
            "store": copy.store,
            "keep": self._keep,
        }
        request = {
            "to": self._to,
            "copy": str(copy.folder),
            "copies": str(copy.folder.parent),
            "unfinished": copy.unfinished,
            "wanted": wanted,
        }
        # A backup stands, even if an older one could not be deleted.
        return await self._number("bytes", request, note)

    async def newest_ms(self, store: str, until_name: str) -> int:
        """See `Finisher`."""
        request = {"to": self._to, "store": store, "until_name": until_name}
        return await self._number("newest_ms", request)

    async def take_away(self, copies: Path, unfinished: tuple[str, ...]) -> int:
        """See `Finisher`."""
        request = {"to": self._to, "copies": str(copies), "unfinished": unfinished}
        return await self._number("taken_away", request)

    async def _number(
        self, name: str, request: dict[str, Any], note: Step = lambda *_: None
    ) -> int:
        """Runs the program; returns the number of this name that it said."""
        said = await self._run(request, note)
        if name not in said:
            raise BackupFailed(said.get("failed", "its process ended"))
        return int(said[name])

    async def _run(self, request: dict[str, Any], note: Step) -> dict[str, Any]:
        """Runs the program; returns all that it said but steps."""
        process = await asyncio.to_thread(_started)
        said: dict[str, Any] = {}
        try:
            async for line in await _lines_from(process, json.dumps(request).encode() + b"\n"):
                told = json.loads(line)
                if "step" in told:
                    note(told["step"], told["done"], told["total"])
                else:
                    said |= told
        finally:
            process.kill()  # it has ended, or is to
            await asyncio.to_thread(process.wait)
        return said


def _started() -> subprocess.Popen[bytes]:
    """Starts the program. On a thread and by `subprocess`, which does not copy the page tables of
    the server: uvloop forks, which holds up the loop for 40 ms per gigabyte that the server has.
    """
    process = subprocess.Popen(  # noqa: S603  # our own program
        [sys.executable, "-m", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the server, which ends it
    )
    # From here, as its imports alone take some tenths of a second of the processor.
    nice = os.getpriority(os.PRIO_PROCESS, 0) + NICENESS
    os.setpriority(os.PRIO_PROCESS, process.pid, nice)
    return process


async def _lines_from(process: subprocess.Popen[bytes], request: bytes) -> asyncio.StreamReader:
    """Hands a process its request; returns its lines. Its stdin stays open: it ends with that."""
    if process.stdin is None or process.stdout is None:
        raise BackupFailed("its process has no pipes")
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), process.stdout)
    # So little is taken by a pipe at once.
    process.stdin.write(request)
    process.stdin.flush()
    return lines
