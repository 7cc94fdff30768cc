"""Evicted dead letters are counted, and logged once a minute for each queue."""

from __future__ import annotations

import pytest

from jobline_server.engine import limits
from jobline_server.engine.effects import Applied
from jobline_server.engine.entries import Fact, JobsDeleted, JobsReady
from jobline_server.engine.load import Load
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.ended import evictions
from jobline_server.runtime.ended.evictions import LOG_EVERY_MS, Evictions
from jobline_server.runtime.slots import JournalPosition, ShardSlot
from jobline_server.runtime.totals import Totals
from jobline_server.storage.segments import KeySegments

NOW_MS = 1_700_000_000_000


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What is logged: queues and counts."""
    found: list[tuple[str, int]] = []

    class Log:
        def warning(self, event: str, *, queue: str, count: int) -> None:
            assert event == "dead letters evicted"
            found.append((queue, count))

    monkeypatch.setattr(evictions, "LOG", Log())
    return found


def batch(*facts: Fact) -> CommittedBatch:
    slot = ShardSlot(
        Shard(0, epoch=1, load=Load()),
        JournalPosition(0, limits.ID_BLOCK, 0, 0, 0, KeySegments(0)),
    )
    return CommittedBatch(slot, 1, [Applied(fact, 1, []) for fact in facts], is_commit=True)


def evicted(at_ms: int, *counts: int, queue: str = "mail") -> JobsDeleted:
    starts = [100 * number for number, _ in enumerate(counts, 1)]
    return JobsDeleted(at_ms, queue, JobState.DEAD, starts, [*counts], evicted=True)


def test_only_evicted_dead_jobs_are_counted(lines: list[tuple[str, int]]) -> None:
    """Not those that somebody deleted, nor completed ones, which a queue loses all the time."""
    found = Evictions()
    Totals(found).on_committed(
        [
            batch(
                JobsDeleted(NOW_MS, "mail", JobState.DEAD, [1], [5]),
                JobsDeleted(NOW_MS, "mail", JobState.COMPLETED, [9], [5], evicted=True),
                JobsReady(NOW_MS, "mail", [7], []),
            )
        ]
    )
    assert (found.count, lines) == (0, [])
    Totals(found).on_committed(
        [batch(evicted(NOW_MS, 2, 3)), batch(evicted(NOW_MS, 1, queue="other"))]
    )
    assert found.count == 6
    assert lines == [("mail", 5), ("other", 1)]


def test_queue_is_logged_once_a_minute_with_all_that_it_lost(lines: list[tuple[str, int]]) -> None:
    found = Evictions()
    for seconds in (0, 1, 59, 60, 61):
        Totals(found).on_committed([batch(evicted(NOW_MS + seconds * 1_000, 2))])
    Totals(found).on_committed([batch(evicted(NOW_MS + 1_000, 4, queue="other"))])
    assert lines == [("mail", 2), ("mail", 6), ("other", 4)]
    Totals(found).on_committed([batch(evicted(NOW_MS + 2 * LOG_EVERY_MS, 1))])
    assert lines[3:] == [("mail", 3)]
    assert found.count == 15
