"""What a worker says of itself, and how settles and times are counted."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from google.protobuf.duration_pb2 import Duration

from jobline._worker.drain import Stage
from jobline._worker.health import Vitals, health_of, metrics_of
from jobline._worker.tallies import NAMES_MAX, Tallies, outcome_of
from jobline.v1 import job_service_pb2 as pb

WELL = Vitals(stage=Stage.WORKING, is_open=True, down_for=None, loop_blocked_for=0.1)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, (200, {"status": "ok"})),
        ({"down_for": 9.0, "is_open": False}, (200, {"status": "ok"})),
        ({"down_for": 11.0}, (503, {"status": "unhealthy", "reasons": ["STREAM_DOWN"]})),
        (
            {"down_for": 11.0, "loop_blocked_for": 6.0},
            (503, {"status": "unhealthy", "reasons": ["STREAM_DOWN", "LOOP_BLOCKED"]}),
        ),
        ({"stage": Stage.FINISHING, "down_for": 11.0}, (200, {"status": "draining"})),
        ({"stage": Stage.STOPPED}, (503, {"status": "unhealthy", "reasons": ["STOPPED"]})),
    ],
)
def test_health(changed: dict[str, Any], expected: tuple[int, dict[str, object]]) -> None:
    assert health_of(replace(WELL, **changed)) == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (pb.FailItem(), "failed"),
        (pb.FailItem(then=pb.FAIL_ACTION_DEAD), "dead"),
        (pb.FailItem(then=pb.FAIL_ACTION_CANCEL), "cancelled"),
        (pb.FailItem(retry_after=Duration(seconds=1)), "retried"),
        (pb.ReleaseItem(why=pb.RELEASE_REASON_SNOOZE), "snoozed"),
        (pb.ReleaseItem(why=pb.RELEASE_REASON_LIMITED), "rate_limited"),
        (pb.ReleaseItem(why=pb.RELEASE_REASON_CRASHED), "released"),
    ],
)
def test_outcomes(item: pb.FailItem | pb.ReleaseItem, expected: str) -> None:
    assert outcome_of(item) == expected


def test_names_have_a_bound_and_are_escaped() -> None:
    """A program that makes names of ids must not fill the memory of whoever scrapes it."""
    tallies = Tallies()
    for number in range(NAMES_MAX + 5):
        context = cast(Any, SimpleNamespace(name=f'n"{number}'))
        tallies.began((number, 1))
        tallies.ended((number, 1), context)
    histograms = tallies.histograms()
    assert len(histograms) == NAMES_MAX + 1
    assert sum(histograms["other"][0]) == 5
    text = metrics_of(replace(WELL, histograms=histograms, outcomes={"completed": 3}))
    assert 'jobline_worker_handler_seconds_bucket{name="n\\"0",le="+Inf"} 1' in text
    assert 'jobline_worker_settled_jobs_total{outcome="completed"} 3' in text
    assert "jobline_worker_up 1\n" in text
