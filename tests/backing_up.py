"""What tests of backups share: to make one and wait for it, and to restore it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from jobline import AsyncClient, Backup, BackupState
from jobline_server.offline.backups.restoring import Restored, find_backup, restore
from jobline_server.offline.findings import Progress


class Silent(Progress):
    """Shows nothing."""

    def begin(self, title: str, total: int | None) -> Callable[[int], None]:
        """Begins a piece of work."""
        return lambda _amount: None


async def ended(client: AsyncClient) -> Backup:
    """Returns the newest backup when it is over."""
    while True:
        found = (await client.admin.backups()).backup
        if found.state is not BackupState.RUNNING:
            return found
        await asyncio.sleep(0.05)  # it is made by another process


async def last_success(client: AsyncClient) -> datetime:
    """Returns when the newest backup was taken, once there is one."""
    while True:
        found = (await client.admin.backups()).last_success_at
        if found is not None:
            return found
        await asyncio.sleep(0.05)  # as above


async def backed_up(client: AsyncClient) -> Backup:
    """Makes a backup and returns it; it must be whole."""
    await client.admin.backup()
    found = await ended(client)
    assert found.state is BackupState.WHOLE, found.problem
    return found


async def restored(where: Path | str, data: Path) -> Restored:
    """Restores the newest backup at a place."""
    now_ms = time.time_ns() // 1_000_000
    return await asyncio.to_thread(restore, find_backup(str(where)), data, now_ms, Silent())
