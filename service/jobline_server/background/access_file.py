"""Reads the file of keys and roles again when it has changed. One with mistakes is not used: what
was known stays, the mistakes are logged, and the metrics say so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from jobline_server.auth.access_file import WrongAccessFile
from jobline_server.auth.authenticator import Authenticator
from jobline_server.background.periodic import Counts
from jobline_server.engine.values import Now
from jobline_server.telemetry.log import logger

LOG = logger("auth")

EVERY_SECONDS = 2.0


class ReadAccessFile:
    """Looks for a change every two seconds. `ask_again` asks for calls that are open."""

    name = "access_file"
    every_seconds = EVERY_SECONDS

    def __init__(
        self, authenticator: Authenticator, ask_again: Callable[[], Awaitable[None]]
    ) -> None:
        self._authenticator = authenticator
        self._ask_again = ask_again

    async def run_once(self, now: Now) -> Counts:
        """Reads the file if it has changed."""
        mistakes = ""
        try:
            has_changed = await self._authenticator.reload()
        except WrongAccessFile as wrong:
            mistakes = str(wrong)
        if mistakes:
            # The rest of the server is well; so this is no failure of the task.
            LOG.error("access file not used", why=mistakes)
            return {"refused": 1}
        if not has_changed:
            return {}
        LOG.info("access file read")
        await self._ask_again()
        return {"read": 1}
