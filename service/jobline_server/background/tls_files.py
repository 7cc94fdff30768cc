"""Reads the certificate, its key and the authorities of clients again when they have changed. Files
that cannot be used are not: connections go on with what was read before.
"""

from __future__ import annotations

from datetime import UTC, datetime

from jobline_server.auth.tls_files import TlsFiles, WrongTlsFiles
from jobline_server.background.periodic import Counts
from jobline_server.engine.values import Now
from jobline_server.telemetry.log import logger

LOG = logger("tls")

EVERY_SECONDS = 2.0


class ReadTlsFiles:
    """Looks for a change every two seconds."""

    name = "tls_files"
    every_seconds = EVERY_SECONDS

    def __init__(self, files: TlsFiles) -> None:
        self._files = files

    async def run_once(self, now: Now) -> Counts:
        """Reads the files if one has changed."""
        mistake = ""
        try:
            has_changed = self._files.reload()
        except WrongTlsFiles as wrong:
            mistake = str(wrong)
        if mistake:
            # The rest of the server is well; so this is no failure of the task.
            LOG.error("certificate not used", why=mistake)
            return {"refused": 1}
        if not has_changed:
            return {}
        expires = datetime.fromtimestamp(self._files.now.expires_s, UTC)
        LOG.info("certificate read", expires=expires.isoformat())
        return {"read": 1}
