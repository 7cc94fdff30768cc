"""Dead letters: a queue's settings for its dead jobs, and when one is put back by itself."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine import limits


@dataclass(frozen=True, slots=True)
class AutoRetry:
    """Puts a dead job back `first_delay_ms` after its death, and later each time; `limit` times at
    most, counted across its deaths.
    """

    first_delay_ms: int = limits.AUTO_RETRY_FIRST_DELAY_MS_DEFAULT
    limit: int = limits.AUTO_RETRIES_DEFAULT

    def retry_ms(self, ended_ms: int, retries: int) -> int | None:
        """Returns when a job that was put back `retries` times before is put back after this death;
        None if it is not.
        """
        if retries >= self.limit:
            return None
        return ended_ms + min(self.first_delay_ms << retries, limits.DELAY_MS_MAX)


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """What becomes of a queue's dead jobs; `None` means the queue's retention, then the default of
    `limits`, and for `auto_retry` that they are not put back.
    """

    expire_after_ms: int | None = None
    keep_forever: bool = False
    max_bytes: int | None = None
    auto_retry: AutoRetry | None = None


NO_DEAD_LETTERS = DeadLetters()
