"""Responses of a watch, as single events. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from jobline._reading import read
from jobline._server_values import Event, WatchedEvent
from jobline.v1.event_pb2 import EventRun
from jobline.v1.job_service_pb2 import WatchResponse

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def watched_events(response: WatchResponse) -> Iterator[WatchedEvent]:
    """Yields the events of a response, each with the token to resume after it."""
    for event in response.events:
        # From a server without runs: its tokens are those of whole responses.
        yield WatchedEvent(read(Event, event), response.resume_token)
    for run in response.runs:
        for number, event_of_run in enumerate(events_of(run), start=1):
            yield WatchedEvent(event_of_run, f"{run.resume_token}+{number}")


def events_of(run: EventRun) -> Iterator[Event]:
    """Yields the events of a run, in order."""
    shared = read(Event, run.shared)
    if not run.starts:
        yield shared
        return
    counts: Sequence[int] = run.counts or [1] * len(run.starts)
    for index, (start, count) in enumerate(zip(run.starts, counts, strict=True)):
        own = replace(shared, **_own(run, index))
        for job_id in range(start, start + count):
            yield replace(own, job_id=job_id)


def _own(run: EventRun, index: int) -> dict[str, Any]:
    """Returns what the events of one run of ids share, beside what all events share."""
    own: dict[str, Any] = {}
    for field, column in (
        ("name", run.names),
        ("delivery", run.deliveries),
        ("attempt", run.attempts),
        ("worker", run.workers),
    ):
        if column:
            own[field] = column[index]
    if run.run_at_ms and run.run_at_ms[index]:
        own["run_at"] = _EPOCH + timedelta(milliseconds=run.run_at_ms[index])
    return own
