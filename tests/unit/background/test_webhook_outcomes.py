"""What becomes of a delivery, by the answer: one table."""

from __future__ import annotations

import pytest

from jobline_server.background.webhook_outcomes import (
    PAUSES_MS,
    RETRY_AFTER_MS_MAX,
    Answer,
    verdict_on,
)
from jobline_server.engine.limits import HOUR_MS
from jobline_server.engine.webhook import Delivery, TryOutcome

NOW_MS = 1_800_000_000_000
DELIVERED, RETRYING = TryOutcome.DELIVERED, TryOutcome.RETRYING
FAILED, GONE = TryOutcome.FAILED, TryOutcome.GONE


def delivery(tries: int = 0, url: str = "") -> Delivery:
    return Delivery(1, "msg", "t", b"", 0, url, tries)


@pytest.mark.parametrize(
    ("answer", "outcome", "is_down"),
    [
        (Answer(200), DELIVERED, False),
        (Answer(204), DELIVERED, False),
        (Answer(299), DELIVERED, False),
        (Answer(301), FAILED, False),
        (Answer(307), FAILED, False),
        (Answer(400), FAILED, False),
        (Answer(404), FAILED, False),
        (Answer(408), RETRYING, False),
        (Answer(410), GONE, False),
        (Answer(429), RETRYING, False),
        (Answer(500), RETRYING, True),
        (Answer(503), RETRYING, True),
        (Answer(error="ConnectError"), RETRYING, True),
        (Answer(error="no answer"), RETRYING, True),
        (Answer(error="not public", is_forbidden=True), FAILED, False),
        (Answer(error="busy", is_unasked=True), RETRYING, False),
    ],
)
def test_table_of_outcomes(answer: Answer, outcome: TryOutcome, is_down: bool) -> None:
    verdict = verdict_on(answer, delivery(), NOW_MS)
    assert (verdict.outcome, answer.is_down) == (outcome, is_down)
    assert bool(verdict.next_ms) == (outcome is RETRYING)


def test_eight_tries_take_about_a_day() -> None:
    assert len(PAUSES_MS) == 7
    assert 20 * HOUR_MS < sum(PAUSES_MS) < 28 * HOUR_MS
    for tries, pause_ms in enumerate(PAUSES_MS):
        verdict = verdict_on(Answer(500), delivery(tries), NOW_MS)
        assert verdict.next_ms - NOW_MS == pytest.approx(pause_ms, rel=0.11)
        assert verdict == verdict_on(Answer(500), delivery(tries), NOW_MS)
    assert verdict_on(Answer(500), delivery(7), NOW_MS).outcome is FAILED


def test_receiver_says_when_to_come_again() -> None:
    """Not before, and not never."""
    verdict = verdict_on(Answer(429, retry_after_ms=HOUR_MS), delivery(), NOW_MS)
    assert verdict.next_ms == NOW_MS + HOUR_MS
    early = verdict_on(Answer(429, retry_after_ms=0), delivery(1), NOW_MS)
    assert early.next_ms > NOW_MS + 200_000
    late = verdict_on(Answer(503, retry_after_ms=10**15), delivery(), NOW_MS)
    assert late.next_ms == NOW_MS + RETRY_AFTER_MS_MAX


def test_url_of_a_job_disables_nothing() -> None:
    assert verdict_on(Answer(410), delivery(url="http://x/"), NOW_MS).outcome is FAILED


def test_redirect_is_said() -> None:
    assert "redirect" in verdict_on(Answer(302), delivery(), NOW_MS).error
