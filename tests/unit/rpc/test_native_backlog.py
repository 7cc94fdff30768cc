"""Whether the native transport is behind, by what it counts."""

from __future__ import annotations

from typing import Any, cast

import pytest

native_backlog = pytest.importorskip("jobline_server.rpc.native_backlog")

LOOK, OLD = native_backlog.LOOK_SECONDS, native_backlog.OLD_SECONDS
BOUNDS = [0.0, 0.001, 0.01, 0.025, 0.1]
REFUSED = 8


class Front:
    """Calls of two methods: how many began, and how long those took that ended."""

    def __init__(self) -> None:
        self.methods: dict[str, dict[str, Any]] = {
            path: {"started": 0, "status": {}} for path in ("/a.B/C", "/a.B/D")
        }

    def metrics(self) -> dict[str, Any]:
        return {"bounds": BOUNDS, "methods": self.methods}

    def end(self, path: str, seconds: float, count: int = 1, code: int = 0) -> None:
        """So many calls begin, and end after a time."""
        own = self.methods[path]
        own["started"] += count
        empty = {"count": 0, "buckets": [0] * (len(BOUNDS) + 1)}
        counts = own["status"].setdefault(code, empty)
        counts["count"] += count
        counts["buckets"][sum(bound < seconds for bound in BOUNDS)] += count


@pytest.fixture
def front() -> Front:
    return Front()


@pytest.fixture
def backlog(front: Front) -> Any:
    return native_backlog.Backlog(cast("Any", front))


def test_what_is_open_is_what_has_not_ended(front: Front, backlog: Any) -> None:
    front.end("/a.B/C", 0.001, 5)
    front.end("/a.B/D", 0.001, 5, REFUSED)
    front.methods["/a.B/D"]["started"] += 7
    assert backlog.open_calls() == 7


def test_calls_are_slow_until_it_is_known(front: Front, backlog: Any) -> None:
    assert backlog.are_slow(10.0)
    front.end("/a.B/C", 0.001, 5)
    assert backlog.are_slow(10.0 + LOOK / 2)
    assert not backlog.are_slow(10.0 + LOOK)


def test_calls_are_slow_if_half_of_them_took_long(front: Front, backlog: Any) -> None:
    """Of all methods together, whatever came before."""
    front.end("/a.B/C", 0.001, 1_000)
    now = 10.0
    backlog.are_slow(now)
    for fast, slow, expected in ((9, 9, True), (10, 9, False), (0, 1, True), (1, 0, False)):
        front.end("/a.B/C", 0.025, fast)
        front.end("/a.B/D", 0.05, slow)
        now += LOOK
        assert backlog.are_slow(now) is expected


def test_refusals_say_nothing(front: Front, backlog: Any) -> None:
    """They are held back, or fast; and where nothing is answered all wait."""
    backlog.are_slow(10.0)
    front.end("/a.B/C", 0.001, 9, REFUSED)
    assert backlog.are_slow(10.0 + LOOK)


def test_what_ended_long_ago_says_nothing(front: Front, backlog: Any) -> None:
    backlog.are_slow(10.0)
    front.end("/a.B/C", 0.001, 9)
    assert backlog.are_slow(10.0 + OLD)
