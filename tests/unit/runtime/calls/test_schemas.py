"""Announced schemas: one copy of each, bounded together, gone with the last stream."""

from __future__ import annotations

import json

import pytest

from jobline_server.dispatch.frames import Handler, Open, Worker
from jobline_server.engine import limits
from jobline_server.runtime.calls import schemas as schemas_module
from jobline_server.runtime.calls.schemas import AnnouncedSchemas
from jobline_server.runtime.runtime import Runtime


def announcing(*schemas: str, result: str = "") -> Open:
    """What a worker announces with a handler for each of these schemas."""
    handlers = [Handler("q", str(number), text, result) for number, text in enumerate(schemas)]
    return Open(Worker(), (("q", 1),), tuple(handlers))


def test_equal_schemas_are_kept_once() -> None:
    """A thousand workers of one version announce the same."""
    schemas = AnnouncedSchemas()
    first, second = (announcing(*[json.dumps({"const": 1})] * 3) for _ in range(2))
    kept = []
    for opened in (first, second):
        kept.append(schemas.shared(opened, 0))
        schemas.add(kept[-1])
    copies = {id(handler.payload_schema) for one in kept for handler in one.handlers}
    assert (len(copies), len(schemas)) == (1, 1)
    assert kept == [first, second]


def test_room_is_counted_in_memory_and_given_back() -> None:
    schemas = AnnouncedSchemas()
    opened = [announcing("a" * 100, result="b" * 50), announcing("a" * 100, "\u20ac" * 100)]
    for one in opened:
        schemas.add(schemas.shared(one, 0))
    assert 950 <= schemas.held_bytes <= 1_200
    schemas.compiled.find("a" * 100)
    for one in opened:
        schemas.remove(one)
    assert (schemas.held_bytes, len(schemas), len(schemas.compiled)) == (0, 0, 0)


def test_schemas_that_have_no_room_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """One worker with many would keep the others out. Those that are here already need no room, and
    smaller ones may have some.
    """
    monkeypatch.setattr(limits, "SCHEMAS_BYTES_MAX", 1_000)
    schemas = AnnouncedSchemas()
    schemas.add(schemas.shared(announcing("a" * 700), 0))
    kept = schemas.shared(announcing("a" * 700, "b" * 300, "c" * 100, result="d" * 300), 0)
    assert [one.payload_schema for one in kept.handlers] == ["a" * 700, "", "c" * 100]
    assert [one.result_schema for one in kept.handlers] == [""] * 3
    assert [one.name for one in kept.handlers] == ["0", "1", "2"]
    schemas.add(kept)
    assert len(schemas) == 2
    schemas.remove(kept)
    assert len(schemas) == 1
    assert schemas.held_bytes < 1_000


def test_schemas_that_are_left_out_are_logged_once_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever connects in a loop does not fill the log."""
    lines: list[dict[str, object]] = []

    class Log:
        def warning(self, event: str, **values: object) -> None:
            assert event == "schemas left out: those of all workers have no more room"
            lines.append(values)

    monkeypatch.setattr(limits, "SCHEMAS_BYTES_MAX", 100)
    monkeypatch.setattr(schemas_module, "LOG", Log())
    schemas = AnnouncedSchemas()
    schemas.shared(announcing("{}"), 0)
    for at_ms in (1_000, 2_000, 60_999, 61_000, 90_000):
        schemas.shared(announcing("a" * 700, "b" * 300), at_ms)
    assert lines == [{"worker": "", "schemas": 2}, {"worker": "", "schemas": 6}]


def test_handlers_without_schemas_are_kept_as_they_are() -> None:
    opened = announcing("")
    assert AnnouncedSchemas().shared(opened, 0) is opened


async def test_streams_of_a_worker_that_comes_back_need_no_more_room(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others that it has now are left out, and nothing stays of either."""
    monkeypatch.setattr(limits, "SCHEMAS_BYTES_MAX", 1_000)
    streams = runtime.streams
    opened = [streams.open_stream(announcing("a" * 700))]
    session = opened[0].session_id
    for text, left in (("b" * 700, ""), ("a" * 700, "a" * 700)):
        again = Open(Worker(), (("q", 1),), announcing(text).handlers, session=session)
        opened.append(streams.open_stream(again))
        assert streams.open == {session: opened[-1]}
        assert opened[-1].session.open.handlers[0].payload_schema == left
        streams.open_stream(announcing("a" * 700)).disconnect()
    for stream in opened:
        stream.disconnect()
    assert (len(streams.handlers.schemas), streams.handlers.schemas.held_bytes) == (0, 0)
