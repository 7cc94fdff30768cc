"""Makes the events of the server itself: of its workers, and of its storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from jobline_server.engine.server_entries import ServerNoted
from jobline_server.runtime.watch.event_origin import EventOrigin
from jobline_server.wire.event_runs import EventRun


def _noted(origin: EventOrigin, fact: ServerNoted) -> Iterator[EventRun]:
    for note in fact.notes:
        view = origin.view(note.at_ms, note.kind, "", worker=note.worker, message=note.message)
        yield EventRun(view)


SERVER: dict[type, Callable[[EventOrigin, Any], Iterator[EventRun]] | None] = {ServerNoted: _noted}
