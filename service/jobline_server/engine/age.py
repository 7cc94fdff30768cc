"""Age: the time by which the windows of keys run."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine.values import Now


@dataclass(slots=True)
class Age:
    """The clock of the windows of keys: a wall clock that is never set and never goes back. While
    the server runs it follows the monotonic clock, between two runs the wall clock.

    `last_ms` and `behind_ms` are those of the newest fact that has them: this time, and by how much
    the wall clock was ahead of it.
    """

    last_ms: int = 0
    behind_ms: int = 0
    # ----
    ahead_of_mono_ms: int | None = None

    def start(self, now: Now) -> None:
        """Starts the clock, once per run of the server."""
        self.ahead_of_mono_ms = max(self.last_ms, now.wall_ms - self.behind_ms) - now.mono_ms

    def at(self, now: Now) -> int:
        """Returns this time, in milliseconds since 1970; starts the clock if needed."""
        if self.ahead_of_mono_ms is None:
            self.start(now)
        return now.mono_ms + (self.ahead_of_mono_ms or 0)

    def note(self, at_ms: int, aged_ms: int) -> None:
        """Records the wall time and the time of this clock at which a fact was decided."""
        if aged_ms >= self.last_ms:
            self.last_ms, self.behind_ms = aged_ms, at_ms - aged_ms
