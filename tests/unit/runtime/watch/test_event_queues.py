"""Events of queues and groups that are told otherwise than their facts say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine import group_entries, queue_entries
from jobline_server.engine.operation_entries import OperationRecorded
from jobline_server.engine.operations import Operation, OperationState
from jobline_server.runtime.watch.event_origin import EventOrigin
from jobline_server.runtime.watch.event_queues import DRAIN_VERB, QUEUES

AT = 1_800_000_000_000


@pytest.fixture
def origin() -> EventOrigin:
    return EventOrigin(1, 7)


def test_a_group_that_used_up_its_rate_is_not_told(origin: EventOrigin) -> None:
    """It is closed and opened again by itself, every period."""
    kind = group_entries.GroupLimited
    by_rate = kind(AT, "mail", "acme", AT + 1_000, is_used_up=True)
    by_hand = kind(AT, "mail", "acme", AT + 1_000)
    make = QUEUES[kind]
    assert make is not None

    assert [list(make(origin, by_rate)), len(list(make(origin, by_hand)))] == [[], 1]


def test_events_of_groups_have_their_names_and_those_of_queues_their_reasons(
    origin: EventOrigin,
) -> None:
    """What a watcher filters by and reads first."""
    paused = queue_entries.QueuePaused(AT, "mail", "root", "hot")
    make = QUEUES[type(paused)]
    assert make is not None
    [run] = make(origin, paused)
    assert (run.shared.queue, run.shared.message) == ("mail", "hot")
    assert run.shared.kind == EventKind.EVENT_KIND_QUEUE_PAUSED


def test_a_queue_is_drained_when_the_operation_is_over(origin: EventOrigin) -> None:
    """Wholly or not: what it did stays done. Its begin is no event, and no other operation is."""
    make = QUEUES[OperationRecorded]
    assert make is not None
    drain = Operation("o", DRAIN_VERB, "root", AT, queue="mail", count=3)

    def kinds(operation: Operation) -> list[tuple[int, str, str]]:
        runs = make(origin, OperationRecorded(AT, operation))
        return [(run.shared.kind, run.shared.queue, run.shared.message) for run in runs]

    drained = [(EventKind.EVENT_KIND_QUEUE_DRAINED, "mail", "3 jobs")]
    assert kinds(drain) == drained
    assert kinds(replace(drain, state=OperationState.INTERRUPTED)) == drained
    assert kinds(replace(drain, state=OperationState.STARTED)) == []
    assert kinds(replace(drain, verb="PauseQueue")) == []
