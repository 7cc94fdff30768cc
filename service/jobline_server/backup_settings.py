"""The settings of backups; `config` has all others."""

from __future__ import annotations

from pydantic import Field

from jobline_server.door_settings import DoorSettings


class BackupSettings(DoorSettings):
    """Whether, where and how often backups are made."""

    backup_to: str = Field(
        default="",
        description="Directory or fsspec URL for backups, outside of `data`. Empty: none are made.",
    )
    backup_every_seconds: int = Field(
        default=0,
        ge=0,
        le=2_592_000,
        description="A backup is made this often, in seconds, 0 … 2,592,000. 0: only on request.",
    )
    backup_keep: int = Field(
        default=0,
        ge=0,
        le=10_000,
        description="Whole backups of this store that stay at the destination, 0 … 10,000; older "
        "ones are deleted when a new one is whole. 0: all stay.",
    )
