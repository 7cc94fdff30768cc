"""Makes the backups of a server: what is done in its process, and the other process beside it."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from jobline_server.config import ConfigurationError, Settings
from jobline_server.history.destination import without_credentials
from jobline_server.runtime.backups import (
    BackupFailed,
    Backups,
    BackupSettings,
    CopyToFinish,
    Finisher,
    Step,
)
from jobline_server.runtime.core import Core
from jobline_server.storage.copies import StoreCopies

FOLDER = "backup"
PROGRAM = "jobline_server.offline.backups.program"


def make_backups(
    core: Core, copies: StoreCopies | None, settings: Settings, version: str
) -> Backups | None:
    """Returns what makes backups, None without a destination. Raises `ConfigurationError` if that
    is in the data directory.
    """
    to = settings.backup_to
    if not to or copies is None:
        return None
    if "://" not in to or to.startswith("file://"):
        path = Path(to.removeprefix("file://")).resolve()
        data = settings.data.resolve()
        if path == data or data in path.parents:
            raise ConfigurationError(
                f"backup_to: {to} is in the data directory, and would be lost with it"
            )
    others = OtherProcess(to, settings.backup_keep, version)
    return Backups(
        core,
        copies,
        BackupSettings(
            settings.data / FOLDER, without_credentials(to), int(settings.low_space_bytes)
        ),
        Finisher(others.finish, others.newest_ms),
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
            "unfinished": copy.unfinished,
            "wanted": wanted,
        }
        said = await self._run(request, note)
        # A backup stands, even if an older one could not be deleted.
        if "bytes" not in said:
            raise BackupFailed(said.get("failed", "its process ended"))
        return int(said["bytes"])

    async def newest_ms(self, store: str) -> int:
        """See `Finisher`."""
        said = await self._run({"to": self._to, "store": store}, lambda *_: None)
        if "newest_ms" not in said:
            raise BackupFailed(said.get("failed", "its process ended"))
        return int(said["newest_ms"])

    async def _run(self, request: dict[str, Any], note: Step) -> dict[str, Any]:
        """Runs the program; returns all that it said but steps."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            PROGRAM,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the server, which ends it
        )
        said: dict[str, Any] = {}
        try:
            if process.stdin is None or process.stdout is None:
                raise BackupFailed("its process has no pipes")
            process.stdin.write(json.dumps(request).encode() + b"\n")
            async for line in process.stdout:
                told = json.loads(line)
                if "step" in told:
                    note(told["step"], told["done"], told["total"])
                else:
                    said |= told
            await process.wait()
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        return said
