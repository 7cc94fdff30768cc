"""Makes the events of webhooks: what was delivered, and what never will be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine.webhook import TryOutcome
from jobline_server.engine.webhook_entries import (
    WebhookChanged,
    WebhookDeleted,
    WebhookProgressed,
)
from jobline_server.runtime.watch.event_origin import EventOrigin
from jobline_server.wire.event_runs import EventRun

DELIVERED = int(EventKind.EVENT_KIND_WEBHOOK_DELIVERED)
FAILED = int(EventKind.EVENT_KIND_WEBHOOK_FAILED)
# No webhook is told of these: it would be told of that, too. Pieces of results are no events.
NEVER_TOLD = frozenset({DELIVERED, FAILED, int(EventKind.EVENT_KIND_PARTIAL)})


def _progressed(origin: EventOrigin, fact: WebhookProgressed) -> Iterator[EventRun]:
    def event(kind: int, message: str) -> EventRun:
        return EventRun(origin.view(fact.at_ms, kind, "", name=fact.name, message=message))

    if fact.missed:
        yield event(FAILED, "events were gone before they were read")
    dropped = len(fact.dropped) + fact.dropped_early
    if dropped:
        yield event(FAILED, f"{dropped} dropped, as too many wait")
    for one in fact.tries:
        if one.outcome is TryOutcome.DELIVERED:
            yield event(DELIVERED, one.id)
        elif one.outcome is not TryOutcome.RETRYING:
            yield event(FAILED, f"{one.id}: {one.error or one.status}")


WEBHOOKS: dict[type, Callable[[EventOrigin, Any], Iterator[EventRun]] | None] = {
    WebhookChanged: None,  # no job and no delivery is concerned
    WebhookDeleted: None,
    WebhookProgressed: _progressed,
}
