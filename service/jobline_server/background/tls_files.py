"""Reads the certificate, its key and the authorities of clients again when they have changed. Files
that cannot be used are not: connections go on with what was read before. A certificate that clients
refuse for its dates is used, and a warning says so.
"""

from __future__ import annotations

from datetime import UTC, datetime

from jobline_server.auth.tls_files import Loaded, TlsFiles, WrongTlsFiles
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
        self._warned: tuple[str, Loaded] | None = None

    def warn(self, now: Now) -> None:
        """Logs, once for each certificate, that clients refuse it for its dates."""
        loaded = self._files.now
        trouble = loaded.trouble(now.wall_ms / 1_000)
        if trouble and self._warned != (trouble, loaded):
            self._warned = trouble, loaded
            begins, ends = _moment(loaded.own_begins_s), _moment(loaded.expires_s)
            LOG.warning(trouble, valid_from=begins, expires=ends)

    async def run_once(self, now: Now) -> Counts:
        """Reads the files if one has changed; one in use may also have expired meanwhile."""
        counts = self._read()
        self.warn(now)
        return counts

    def _read(self) -> Counts:
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
        LOG.info("certificate read", expires=_moment(self._files.now.expires_s))
        return {"read": 1}


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
