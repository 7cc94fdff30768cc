"""Backups of a server, as the client returns them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum


class BackupState(IntEnum):
    """What becomes of a backup. UNSPECIFIED: none was begun since the start of the server."""

    UNSPECIFIED = 0
    RUNNING = 1
    WHOLE = 2
    FAILED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A backup.

    - `name`: its folder at the destination; "" for a moment after its begin.
    - `step`: what is done just now, such as "copying", "" when it is over; `done` of `total` of it,
      in bytes when copying and sending, else in records. `total` 0: unknown.
    - `taken_at`: the moment whose state it has; None until all is copied.
    - `stored_bytes`: of a whole one.
    - `problem`: why one failed, or ""; of one that is RUNNING, why the last one before it did.
    """

    state: BackupState
    name: str
    step: str
    done: int
    total: int
    started_at: datetime | None
    ended_at: datetime | None
    taken_at: datetime | None
    stored_bytes: int
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Backups:
    """The newest backup since the start of the server, also one that failed; the moment whose state
    the newest whole one at the destination has, None if there is none or nobody could look yet; and
    the destination, "" for none.
    """

    backup: Backup
    last_success_at: datetime | None
    destination: str
