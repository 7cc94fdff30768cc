"""How a checkpoint shares the store with commits."""

from __future__ import annotations

import pytest

from jobline_server.runtime.checkpoints import REST_MAX, REST_MIN, rest_after

ROOM = 1_000


@pytest.mark.parametrize(
    ("grown", "rests"),
    [
        (0, REST_MAX),
        (ROOM // 2, (REST_MAX + REST_MIN) / 2),
        (ROOM, REST_MIN),
        (100 * ROOM, REST_MIN),
    ],
)
def test_a_checkpoint_hurries_the_more_the_journal_grows(grown: int, rests: float) -> None:
    """Commits keep most of the store's time, and in any case half of it."""
    assert rest_after(0.01, grown, ROOM) == pytest.approx(rests * 0.01)


def test_a_journal_that_was_cut_meanwhile_is_no_reason_to_rest_longer() -> None:
    """The checkpoint's own end sets the count of bytes back."""
    assert rest_after(0.01, -5 * ROOM, ROOM) == pytest.approx(REST_MAX * 0.01)
