"""A page of queues begins behind the place of the last queue of the page before."""

from __future__ import annotations

import pytest

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import JobState
from jobline_server.runtime.queries.queue_order import FIRST, QueueOrder


def queue_of(name: str, ready: int = 0, active: int = 0) -> Queue:
    queue = Queue(name, 1, 0)
    queue.counts[JobState.READY], queue.counts[JobState.ACTIVE] = ready, active
    return queue


def test_the_busiest_come_first_then_those_with_the_most_jobs_then_by_name() -> None:
    lately = {"a": 1, "b": 1, "c": 1, "d": 90}
    queues = [queue_of("d"), queue_of("c", 2, 7), queue_of("b", 9), queue_of("a", 10)]
    order = QueueOrder.ACTIVITY
    places = sorted(order.place_of(queue, lambda one: lately[one.name]) for queue in queues)
    assert [place[-1] for place in places] == ["d", "a", "b", "c"]
    assert places[0] > FIRST


@pytest.mark.parametrize("order", QueueOrder)
@pytest.mark.parametrize("name", ["mail", "a.b", "1.2.3", "0"])
def test_a_place_comes_back_from_its_text(order: QueueOrder, name: str) -> None:
    place = order.place_of(queue_of(name, 3, 4), lambda _queue: 2**62)
    assert order.place_at(order.cursor_of(place)) == place


@pytest.mark.parametrize("cursor", ["mail", "1.mail", "1.2.", "-1.2.a", "1.x.a", "9" * 20 + ".1.a"])
def test_a_text_that_is_no_place_is_refused(cursor: str) -> None:
    with pytest.raises(Refused) as refused:
        QueueOrder.ACTIVITY.place_at(cursor)
    assert refused.value.kind is RefusalKind.INVALID_PAGE_TOKEN
