"""The rows of random histories of the engine, beside the engine's own counts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from jobline_server.engine.effects import Applied
from jobline_server.engine.shard import Shard
from jobline_server.history.events import MAKERS, rows_of
from tests.unit.engine.test_model import EngineBesideModel
from tests.unit.history.expanded import expanded

PROFILE = settings(
    max_examples=40,
    stateful_step_count=70,
    deadline=None,
    database=None,
    report_multiple_bugs=False,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
# With each new rule the same seeds give other histories, and some kinds are rare in them.
SEEDS_MAX = 10
seen: Counter[str] = Counter()

Row = dict[str, Any]


class HistoryBesideEngine(EngineBesideModel):
    """Makes rows of each fact as it is applied, and knows by them which jobs there are."""

    def __init__(self) -> None:
        super().__init__()
        self.live: dict[int, Row] = {}
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
        for row in [row for rows in rows_of([applied]) for row in expanded(rows)]:
            event, job_id = row["event"], row.get("job_id")
            seen[event] += 1
            if job_id is None:
                continue
            if event in ("pushed", "retried", "dead_retried"):
                assert job_id not in self.live
                self.live[job_id] = row
            else:
                assert job_id in self.live, "an event of a job between its push and its end"
            if row.get("final"):
                ends_with_all(row, self.live.pop(job_id))

    def teardown(self) -> None:
        """Jobs that rows say are live are those that are; each has its name and priority."""
        shard = self.both.shard
        for job_id in self.live:
            assert shard.state_of(job_id) is not None
        of_engine = sum(not job.volatile for job in shard.jobs.values())
        of_engine += sum(lot.remaining for lot in shard.lots.lots.values() if not lot.volatile)
        assert len(self.live) == of_engine
        super().teardown()


def ends_with_all(end: Row, push: Row) -> None:
    """An end needs no other row: it says what is known of the attempt and of the job."""
    for name in ("queue", "name", "group", "pushed_at"):
        assert end.get(name) == push.get(name)
    assert {"attempts", "stalls", "releases", "payload_bytes"} <= end.keys()
    if end["event"] == "completed":
        assert end["attempts"]
        assert {"leased_at", "result_bytes"} <= end.keys()
    if "leased_at" in end:
        assert {"delivery", "attempt"} <= end.keys()
        assert end["pushed_at"] <= end["ready_at"] <= end["leased_at"] <= end["at"]


@pytest.mark.timeout(900)
def test_rows_say_which_jobs_there_are_and_how_they_ended() -> None:
    """In histories of all features; what never happens is not tested."""
    seen.clear()
    assert len(MAKERS)
    expected = {
        "pushed", "leased", "completed", "retrying", "released", "stalled", "dead", "cancelled",
        "expired", "deleted", "ready", "unblocked", "retried", "updated", "progress",
        "cancel_requested",
    }  # fmt: skip
    for number in range(SEEDS_MAX):
        run_state_machine_as_test(seed(number)(HistoryBesideEngine), settings=PROFILE)
        if number and expected <= seen.keys():
            break
    assert not expected - seen.keys()
