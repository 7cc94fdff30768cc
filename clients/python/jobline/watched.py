"""What a watch is told, as events one by one. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jobline.v1.event_pb2 import Event, EventRun
from jobline.v1.job_service_pb2 import WatchResponse
from jobline.values import WatchedEvent


def watched_events(response: WatchResponse) -> Iterator[WatchedEvent]:
    """The events of an answer, each with the token to resume after it."""
    for event in response.events:
        # Of a server that knows no runs: its tokens stand for whole answers.
        yield WatchedEvent(event, response.resume_token)
    for run in response.runs:
        for told, event in enumerate(events_of(run), start=1):
            yield WatchedEvent(event, f"{run.resume_token}+{told}")


def events_of(run: EventRun) -> Iterator[Event]:
    """The events of a run, in order."""
    if not run.starts:
        yield run.shared
        return
    counts: Sequence[int] = run.counts or [1] * len(run.starts)
    for index, (start, count) in enumerate(zip(run.starts, counts, strict=True)):
        shared = _own(run, index)
        for job_id in range(start, start + count):
            event = Event()
            event.CopyFrom(shared)
            event.job_id = job_id
            yield event


def _own(run: EventRun, index: int) -> Event:
    """What the events of one run of ids have in common."""
    own: dict[str, Any] = {}
    for field, column in (
        ("name", run.names),
        ("delivery", run.deliveries),
        ("attempt", run.attempts),
        ("worker", run.workers),
    ):
        if column:
            own[field] = column[index]
    event = Event()
    event.CopyFrom(run.shared)
    event.MergeFrom(Event(**own))
    if run.run_at_ms and run.run_at_ms[index]:
        event.run_at.FromMilliseconds(run.run_at_ms[index])
    return event
