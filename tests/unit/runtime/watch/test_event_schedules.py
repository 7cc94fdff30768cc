"""What watchers see of the runs of schedules."""

from __future__ import annotations

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine.effects import Applied
from jobline_server.engine.schedule import SkipReason
from jobline_server.engine.schedule_entries import (
    ScheduleDeleted,
    ScheduleFact,
    SchedulePaused,
    ScheduleResumed,
    ScheduleTicked,
)
from jobline_server.runtime.watch.events import event_runs
from jobline_server.wire.event_runs import EventRun


def runs_of(fact: ScheduleFact) -> list[EventRun]:
    return event_runs(1, 5, [Applied(fact, 5, [])])


def test_each_run_has_an_event_and_missed_ones_have_one() -> None:
    fact = ScheduleTicked(
        9,
        "s",
        "q",
        fired_ms=[1, 2],
        job_ids=[11, 12],
        skipped_ms=[3, 4],
        skip_reasons=[SkipReason.OVERLAP, SkipReason.REFUSED],
        skip_message="QUEUE_FULL: q is full",
        missed=7,
        missed_ms=8,
    )
    found = runs_of(fact)
    assert {(run.shared.queue, run.shared.name, run.shared.at_ms) for run in found} == {
        ("q", "s", 9)
    }
    missed, fired, skipped = (
        EventKind.EVENT_KIND_SCHEDULE_MISSED,
        EventKind.EVENT_KIND_SCHEDULE_FIRED,
        EventKind.EVENT_KIND_SCHEDULE_SKIPPED,
    )
    assert [(run.shared.kind, [*run.starts], run.shared.run_at_ms) for run in found] == [
        (missed, [], 8),
        (fired, [11], 1),
        (fired, [12], 2),
        (skipped, [], 3),
        (skipped, [], 4),
    ]
    assert [run.shared.message for run in found] == [
        "7 missed",
        "",
        "",
        "OVERLAP",
        "REFUSED: QUEUE_FULL: q is full",
    ]


def test_other_facts_of_schedules_have_none() -> None:
    facts = (
        ScheduleDeleted(1, "s"),
        SchedulePaused(1, "s", "", ""),
        ScheduleResumed(1, "s", 5),
        ScheduleTicked(1, "s", "q", next_ms=9),
    )
    assert [run for fact in facts for run in runs_of(fact)] == []
