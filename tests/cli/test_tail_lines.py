"""Lines of `jobline tail`."""

from __future__ import annotations

import pytest

from jobline._reading import read
from jobline._server_values import Event
from jobline.cli.tail import event_line
from jobline.v1 import event_pb2 as pb


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            pb.Event(
                kind=pb.EVENT_KIND_WORKER_CONNECTED, worker="w1", message="version 1.2; queue mail"
            ),
            " worker_connected at w1 version 1.2; queue mail",
        ),
        (pb.Event(kind=pb.EVENT_KIND_WORKER_LOST, worker="w1"), " worker_lost      at w1"),
        (
            pb.Event(kind=pb.EVENT_KIND_STORAGE_LOW, message="7 bytes are free"),
            " storage_low      7 bytes are free",
        ),
        (
            pb.Event(kind=pb.EVENT_KIND_QUEUE_PAUSED, queue="q", principal="ann@h", message="hot"),
            " queue_paused    q by ann@h hot",
        ),
        (
            pb.Event(kind=pb.EVENT_KIND_GROUP_PAUSED, queue="q", name="g", group="g"),
            " group_paused    q g",
        ),
        (
            pb.Event(kind=pb.EVENT_KIND_PUSHED, queue="q", job_id=7, name="n", group="g"),
            " pushed          q 7 n group g",
        ),
    ],
)
def test_a_line_says_what_happened_to_what_and_by_whom(event: pb.Event, line: str) -> None:
    assert event_line(read(Event, event)).plain == line
