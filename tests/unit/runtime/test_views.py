"""Views: plain values that agree with the protocol."""

from __future__ import annotations

from typing import Any

import pytest

from jobline_server.engine.values import EndReason, JobState
from jobline_server.runtime.views import BulkResult, JobFilter

CONDITIONS: dict[str, Any] = {
    "queue": "mail",
    "name": "",
    "states": frozenset({JobState.READY}),
    "reasons": frozenset({EndReason.NONE}),
    "pushed_after_ms": 0,
    "pushed_before_ms": 0,
    "ended_after_ms": 0,
    "ended_before_ms": 0,
    "headers": (("", ""),),
    "error_type": "E",
    "error_contains": "x",
    "group": "g",
    "tags": frozenset({"t"}),
    "batches": frozenset({7}),
}


def test_a_filter_without_conditions_is_empty() -> None:
    """A call on all jobs has to say so: `rpc` asks."""
    assert JobFilter().is_empty()


@pytest.mark.parametrize("name", JobFilter.__slots__)
def test_a_filter_with_any_condition_is_not_empty(name: str) -> None:
    """Times of 0 and an empty name are conditions: only None is none."""
    assert not JobFilter(**{name: CONDITIONS[name]}).is_empty()


def test_results_share_no_list() -> None:
    """Each call adds to its own."""
    one, other = BulkResult(), BulkResult()
    for found in (one.skipped_ids, one.not_found_ids, one.full_ids):
        found.append(1)
    assert other == BulkResult()
