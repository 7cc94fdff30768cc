"""Growing pauses with jitter, for retries and reconnects. Chance comes in as an argument."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

# The longest pause before another try, in seconds, whatever the server asks for.
ASKED_MAX = 30.0
_DOUBLINGS_MAX = 30  # 2.0 ** 30 s is past every sensible longest pause


@dataclass(frozen=True, slots=True)
class Pauses:
    """`first` seconds, doubled each time up to `longest`; each is drawn from its upper half, so
    that many clients that lost the same server do not return together.
    """

    first: float
    longest: float

    def after(self, tries: int, chance: Callable[[], float]) -> float:
        """Returns the pause after this many tries, 1 …; `chance` returns a number in 0 … 1."""
        doublings = min(max(tries - 1, 0), _DOUBLINGS_MAX)
        whole = min(self.longest, self.first * 2.0**doublings)
        return whole * (0.5 + 0.5 * chance())


def as_asked(retry_after: float | None, pause: float) -> float:
    """Returns the seconds to wait before another try: `pause`, or longer if the server asked for
    that, but not for more than `ASKED_MAX`.
    """
    return max(pause, min(retry_after or 0.0, ASKED_MAX))


RETRY = Pauses(first=0.05, longest=2.0)
"""Between tries of a call whose outcome is unknown."""

RECONNECT = Pauses(first=0.1, longest=5.0)
"""Between tries to open a worker's stream."""
