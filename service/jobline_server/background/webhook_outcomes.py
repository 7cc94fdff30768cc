"""What becomes of a delivery, by the answer of the receiver; a table, and no network."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple
from zlib import crc32

from jobline_server.engine.limits import HOUR_MS, MINUTE_MS, SECOND_MS
from jobline_server.engine.webhook import RETRY_MS_MAX, Delivery, Try, TryOutcome, Webhook

# The pauses between eight tries: about a day in all, as Standard Webhooks recommends.
PAUSES_MS = (
    5 * SECOND_MS,
    5 * MINUTE_MS,
    30 * MINUTE_MS,
    2 * HOUR_MS,
    5 * HOUR_MS,
    8 * HOUR_MS,
    8 * HOUR_MS,
)
RETRY_AFTER_MS_MAX = RETRY_MS_MAX
JITTER = 0.1
_GONE = 410
_AGAIN = frozenset({408, 429})


class Answer(NamedTuple):
    """What a receiver answered, or why there is no answer (`error`, with the status 0). With
    `is_forbidden` it was not asked, as a webhook must not lead there; with `is_unasked` it was not
    asked for a reason that is this server's, and is asked again.
    """

    status: int = 0
    error: str = ""
    retry_after_ms: int | None = None
    is_forbidden: bool = False
    is_unasked: bool = False

    @property
    def is_delivered(self) -> bool:
        """Returns whether the receiver has it."""
        return 200 <= self.status < 300

    @property
    def is_down(self) -> bool:
        """Returns whether the host seems to be down: no answer, or 5xx."""
        if self.is_forbidden or self.is_unasked:
            return False
        return not self.status or self.status >= 500


class Verdict(NamedTuple):
    """What becomes of a delivery, when it is tried again (0: never), and why it did not arrive."""

    outcome: TryOutcome
    next_ms: int = 0
    error: str = ""


def verdict_on(answer: Answer, delivery: Delivery, now_ms: int) -> Verdict:
    """Returns what becomes of a delivery after this answer."""
    if answer.is_delivered:
        return Verdict(TryOutcome.DELIVERED)
    error = answer.error or _ERRORS.get(answer.status, "")
    if 300 <= answer.status < 400:
        error = "redirects are not followed"
    if answer.status == _GONE and not delivery.url:
        return Verdict(TryOutcome.GONE, error=error)
    is_last = delivery.tries >= len(PAUSES_MS)
    if is_last or not (answer.is_down or answer.is_unasked or answer.status in _AGAIN):
        return Verdict(TryOutcome.FAILED, error=error)
    pause_ms = _jittered(PAUSES_MS[delivery.tries], delivery)
    if answer.retry_after_ms is not None:
        pause_ms = max(pause_ms, min(answer.retry_after_ms, RETRY_AFTER_MS_MAX))
    return Verdict(TryOutcome.RETRYING, now_ms + pause_ms, error)


_ERRORS = {_GONE: "the receiver is gone"}


def _jittered(pause_ms: int, delivery: Delivery) -> int:
    """Returns a pause that is the same for the same delivery and try."""
    share = crc32(f"{delivery.id}/{delivery.tries}".encode()) / 0xFFFFFFFF
    return pause_ms + round(pause_ms * JITTER * (2.0 * share - 1.0))


def settled(webhook: Webhook, url: str, one: Try) -> Try:
    """Returns a result as it counts now: that an URL is gone says nothing of the next one."""
    if one.outcome is TryOutcome.GONE and url != webhook.settings.url:
        return replace(one, outcome=TryOutcome.FAILED)
    return one
