"""The settings of what workers may say; `config` has all others."""

from __future__ import annotations

from pydantic import Field

from jobline_server.backup_settings import BackupSettings


class WorkerSettings(BackupSettings):
    """What a worker may have happen to others than its own jobs."""

    worker_limit_seconds: int = Field(
        default=86_400,
        ge=1,
        le=34_560_000,
        description="The longest time for which a worker may say that a limit is reached (a 429), "
        "in seconds, 1 … 34,560,000; a longer one counts as this.",
    )
