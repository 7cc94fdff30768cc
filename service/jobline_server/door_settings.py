"""The settings of who may come in: authentication and TLS; `config` has all others."""

from __future__ import annotations

from pydantic import Field

from jobline_server.history_settings import HistorySettings
from jobline_server.setting_types import File


class DoorSettings(HistorySettings):
    """Who may call."""

    auth: File = Field(
        default=None,
        description="File (TOML) of API keys, JWT issuers, certificates and roles; who is not "
        "allowed there is refused. Read again when it changes. Empty: everybody may call.",
    )
