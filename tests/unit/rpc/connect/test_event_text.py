"""The text of events: protobuf's JSON of each, whatever the form in which they come."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st

from jobline.v1.event_pb2 import EVENT_KIND_PARTIAL, Event, EventRun
from jobline.v1.job_service_pb2 import WatchResponse
from jobline_server.rpc.connect import event_text
from jobline_server.rpc.connect.event_text import EVENTS_AT_ONCE, EventText
from jobline_server.rpc.convert.event_writer import EventWriter
from jobline_server.runtime.watch.feed_reader import Answer, Part
from jobline_server.wire.event_runs import Columns, EventView
from jobline_server.wire.event_runs import EventRun as Run

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SMALL = st.integers(0, 3)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """A run of events of a few jobs, or of a queue."""
    view = EventView(
        draw(SMALL),
        draw(SMALL),
        draw(st.integers(0, 10**12)),
        draw(st.integers(1, 15)),
        draw(TEXT),
        name=draw(TEXT),
        delivery=draw(SMALL),
        attempt=draw(SMALL),
        worker=draw(TEXT),
        run_at_ms=draw(st.integers(0, 10**12)),
        progress=draw(st.sampled_from([0.0, 0.5, 100.0])),
        message=draw(TEXT),
        batch_id=draw(SMALL),
    )
    size = draw(SMALL)
    if not size:
        return Run(view)
    counts = draw(st.lists(st.integers(1, 4), min_size=size, max_size=size))
    starts = [1 + 10 * index for index in range(size)]

    def column(values: st.SearchStrategy[Any]) -> Any:
        return draw(st.just(()) | st.lists(values, min_size=size, max_size=size))

    columns = Columns(
        column(TEXT), column(SMALL), column(SMALL), column(TEXT), column(st.integers(0, 10**12))
    )
    if columns.run_at_ms:
        view.run_at_ms = 0  # never both: the slow way would add them up
    return Run(view, starts, counts, columns, sum(counts))


def events_in(text: bytes) -> list[tuple[str, Any]]:
    """The ids and data of a text."""
    found = []
    for block in text.decode().split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        found.append((fields.get("id", ""), json.loads(fields["data"])))
    return found


@given(st.lists(runs(), min_size=1, max_size=3))
def test_runs_are_written_as_the_single_events_are(given_runs: list[Run]) -> None:
    """The slow way is that of watchers that take no runs, and protobuf's own JSON."""
    parts = [Part((0, n), run, 0, run.total, f"{n}.0@0+1") for n, run in enumerate(given_runs)]
    answer = Answer(parts, "9.9")
    as_runs = EventWriter().response(answer, as_runs=True)
    singles = [
        MessageToDict(event)
        for part in parts
        for event in WatchResponse.FromString(
            EventWriter().response(Answer([part], "9.9"), as_runs=False)
        ).events
    ]
    found = events_in(b"".join(EventText().pieces(as_runs)))
    assert [data for _, data in found] == singles
    assert [token for token, _ in found] == [
        f"{part.begun}+{number}" for part in parts for number in range(1, part.run.total + 1)
    ]


def answer_of(count: int) -> bytes:
    run = EventRun(starts=[1], counts=[count], resume_token="1.2")
    return WatchResponse(runs=[run], resume_token="1.3").SerializeToString()


def test_a_long_run_comes_in_pieces_and_is_not_kept() -> None:
    text = EventText()
    pieces = list(text.pieces(answer_of(3 * EVENTS_AT_ONCE + 1)))
    assert [piece.count(b"data: ") for piece in pieces] == [*[EVENTS_AT_ONCE] * 3, 1]
    assert not text._kept


def test_a_short_answer_is_written_once_for_all_readers(monkeypatch: Any) -> None:
    text = EventText()
    (first,) = text.pieces(answer_of(2))
    monkeypatch.setattr(event_text, "_texts", None)
    (second,) = text.pieces(answer_of(2))
    assert second is first


def test_what_is_kept_is_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr(event_text, "KEPT_BYTES_MAX", 1_000)
    text = EventText()
    for count in range(1, 20):
        list(text.pieces(answer_of(count)))
        assert text._bytes <= 1_000
    assert text._bytes == sum(event_text._size(*kept) for kept in text._kept.items())


def test_a_heartbeat_is_a_comment_with_the_id() -> None:
    heartbeat = WatchResponse(resume_token="1.2.3").SerializeToString()
    assert list(EventText().pieces(heartbeat)) == [b": ping\nid: 1.2.3\n\n"]


def test_pieces_of_a_result_have_no_id() -> None:
    """They have no place among the events."""
    piece = Event(kind=EVENT_KIND_PARTIAL, job_id=7, partial=b"\x00a", partial_number=1)
    answer = WatchResponse(events=[piece], resume_token="1.2.3").SerializeToString()
    (text,) = EventText().pieces(answer)
    assert events_in(text) == [("", MessageToDict(piece))]


def test_a_worker_and_a_name_may_be_a_zero() -> None:
    """Only the default is left out."""
    run = EventRun(starts=[1, 2], counts=[1, 1], names=["", "0"], workers=["0", ""])
    (text,) = EventText().pieces(WatchResponse(runs=[run]).SerializeToString())
    data = [data for _, data in events_in(text)]
    assert data == [{"jobId": "1", "worker": "0"}, {"jobId": "2", "name": "0"}]


def test_no_text_of_an_event_ends_its_line() -> None:
    run = EventRun(shared=Event(message="a\nb\rc\u2028d\n\ndata: x"), resume_token="1.2")
    answer = WatchResponse(runs=[run]).SerializeToString()
    (text,) = EventText().pieces(answer)
    assert text.count(b"\n") == 3
    assert b"\r" not in text
