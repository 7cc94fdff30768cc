"""Announced schemas: one copy of each, bounded together, gone with the last stream."""

from __future__ import annotations

import json

import pytest

from jobline_server.dispatch.frames import Handler, Open, Worker
from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
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
        kept.append(schemas.shared(opened))
        schemas.add(kept[-1])
    copies = {id(handler.payload_schema) for one in kept for handler in one.handlers}
    assert (len(copies), len(schemas)) == (1, 1)
    assert kept == [first, second]


def test_room_is_counted_in_memory_and_given_back() -> None:
    schemas = AnnouncedSchemas()
    opened = [announcing("a" * 100, result="b" * 50), announcing("a" * 100, "\u20ac" * 100)]
    for one in opened:
        schemas.add(schemas.shared(one))
    assert 950 <= schemas.held_bytes <= 1_200
    schemas.compiled.find("a" * 100)
    for one in opened:
        schemas.remove(one)
    assert (schemas.held_bytes, len(schemas), len(schemas.compiled)) == (0, 0, 0)


def test_stream_whose_schemas_have_no_room_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are here already need none."""
    monkeypatch.setattr(limits, "SCHEMAS_BYTES_MAX", 1_000)
    schemas = AnnouncedSchemas()
    schemas.add(schemas.shared(announcing("a" * 700)))
    with pytest.raises(Refused) as caught:
        schemas.shared(announcing("a" * 700, "b" * 300))
    assert caught.value.kind is RefusalKind.TOO_MANY_CALLS
    assert caught.value.retry_after_ms
    assert len(schemas) == 1
    schemas.add(schemas.shared(announcing("a" * 700)))
    schemas.add(schemas.shared(announcing("c" * 100)))
    assert len(schemas) == 2


def test_handlers_without_schemas_are_kept_as_they_are() -> None:
    opened = announcing("")
    assert AnnouncedSchemas().shared(opened) is opened


async def test_streams_of_a_worker_that_comes_back_need_no_more_room(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does a refused one end the stream that its session has, or leave anything."""
    monkeypatch.setattr(limits, "SCHEMAS_BYTES_MAX", 1_000)
    streams = runtime.streams
    first = streams.open_stream(announcing("a" * 700))
    session = first.session_id
    again = Open(Worker(), (("q", 1),), announcing("b" * 700).handlers, session=session)
    with pytest.raises(Refused):
        streams.open_stream(again)
    assert streams.open == {session: first}
    again = Open(Worker(), (("q", 1),), announcing("a" * 700).handlers, session=session)
    second = streams.open_stream(again)
    assert streams.open == {session: second}
    for stream in (first, second):
        stream.disconnect()
    assert (len(streams.handlers.schemas), streams.handlers.schemas.held_bytes) == (0, 0)
