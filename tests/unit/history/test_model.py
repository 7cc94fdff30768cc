"""The rows of random histories of the engine, beside the engine's own counts."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from jobline_server.engine.effects import Applied
from jobline_server.engine.shard import Shard
from jobline_server.history.events import MAKERS, rows_of
from jobline_server.history.rows import Rows
from tests.unit.engine.test_model import EngineBesideModel

PROFILE = settings(
    max_examples=40,
    stateful_step_count=70,
    deadline=None,
    database=None,
    report_multiple_bugs=False,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
seen: Counter[str] = Counter()


def ids_of(rows: Rows) -> list[int]:
    runs = zip(rows.starts, rows.counts, strict=True)
    return [job_id for start, count in runs for job_id in range(start, start + count)]


class HistoryBesideEngine(EngineBesideModel):
    """Makes rows of each fact as it is applied, and knows by them which jobs there are."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Rows] = []
        self.live: dict[int, Rows] = {}
        self.watch(self.both.shard)

    def watch(self, shard: Shard) -> None:
        shard.load.keeps_history = True
        emit = shard.emit

        def emit_and_note(*fact: Any, **how: Any) -> None:
            emit(*fact, **how)
            self.note(shard.applied[-1])

        shard.emit = emit_and_note  # type: ignore[method-assign]  # observed

    @precondition(lambda self: len(self.both.journal) > 10)
    @rule()
    def restart(self) -> None:
        super().restart()
        self.watch(self.both.shard)

    def note(self, applied: Applied) -> None:
        for rows in rows_of([applied]):
            seen[rows.event] += 1
            self.rows.append(rows)
            ids = ids_of(rows)
            assert rows.total == max(len(ids), 1)
            for job_id in ids:
                if rows.event in ("pushed", "retried", "dead_retried"):
                    assert job_id not in self.live
                    self.live[job_id] = rows
                else:
                    assert job_id in self.live, "an event of a job between its push and its end"
                if rows.final:
                    ends_with_all(rows, self.live.pop(job_id))

    def teardown(self) -> None:
        """Jobs that rows say are live are those that are; each has its name and priority."""
        shard = self.both.shard
        for job_id in self.live:
            assert shard.state_of(job_id) is not None
        of_engine = sum(not job.volatile for job in shard.jobs.values())
        of_engine += sum(lot.remaining for lot in shard.lots.lots.values() if not lot.volatile)
        assert len(self.live) == of_engine
        super().teardown()


def ends_with_all(end: Rows, push: Rows) -> None:
    """An end needs no other row: it says what is known of the attempt and of the job."""
    assert end.queue == push.queue
    assert (end.name, end.group) == (push.name, push.group)
    assert end.pushed_at == push.pushed_at
    assert None not in (end.attempts, end.stalls, end.releases)
    assert end.payload_bytes is not None or end.sizes
    if end.event == "completed":
        assert end.attempts
        assert end.leased_at is not None
        assert end.result_bytes is not None
    if end.leased_at is not None:
        assert None not in (end.ready_at, end.delivery, end.attempt)
        assert end.pushed_at <= end.ready_at <= end.leased_at <= end.at  # type: ignore[operator]


def test_rows_say_which_jobs_there_are_and_how_they_ended() -> None:
    """In histories of all features; what never happens is not tested."""
    seen.clear()
    for number in range(2):
        run_state_machine_as_test(seed(number)(HistoryBesideEngine), settings=PROFILE)
    assert len(MAKERS)
    expected = {
        "pushed", "leased", "completed", "retrying", "released", "stalled", "dead", "cancelled",
        "expired", "deleted", "ready", "unblocked", "retried", "updated", "progress",
        "cancel_requested",
    }  # fmt: skip
    assert not expected - seen.keys()
