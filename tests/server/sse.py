"""Reads server-sent events by the rules of the standard, over any bytes that come."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from jobline_server.testing import RunningServer


@dataclass(slots=True)
class Read:
    """What a browser's EventSource gives its page. `id` is the last one, or of an event before."""

    kind: str
    data: Any
    id: str


@dataclass(slots=True)
class Reader:
    """Takes lines; gives events. `pings` counts comments."""

    last_id: str = ""
    retry_ms: int = 0
    pings: int = 0
    _kind: str = ""
    _data: list[str] = field(default_factory=list)

    def take(self, line: str) -> Read | None:
        """Takes a line; returns the event that it ends."""
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            data, kind = "\n".join(self._data), self._kind or "message"
            self._data, self._kind = [], ""
            return Read(kind, json.loads(data), self.last_id) if data else None
        if not name:
            self.pings += 1
        elif name == "id":
            self.last_id = value
        elif name == "data":
            self._data.append(value)
        elif name == "event":
            self._kind = value
        elif name == "retry":
            self.retry_ms = int(value)
        else:
            raise AssertionError(f"no field of the standard: {line!r}")
        return None


class Watcher:
    """An open stream."""

    def __init__(self, response: httpx.Response, last_id: str) -> None:
        self.response = response
        self.reader = Reader(last_id)
        self._lines = response.aiter_lines()

    async def begun(self) -> str:
        """Waits for the first answer; returns the id to resume from now."""
        while not self.reader.pings:
            assert self.reader.take(await anext(self._lines)) is None
        while line := await anext(self._lines):
            self.reader.take(line)
        return self.reader.last_id

    async def read(self, count: int = 1) -> list[Read]:
        """The next events."""
        found: list[Read] = []
        while len(found) < count:
            event = self.reader.take(await anext(self._lines))
            if event is not None:
                found.append(event)
        return found

    async def events(self) -> AsyncIterator[Read]:
        """All events until the stream ends."""
        async for line in self._lines:
            event = self.reader.take(line)
            if event is not None:
                yield event


@asynccontextmanager
async def watching(
    server: RunningServer | str, query: str = "", last_id: str = "", **headers: str
) -> AsyncIterator[Watcher]:
    """An open stream with this query; `last_id` resumes it, as browsers do."""
    http = server if isinstance(server, str) else server.http
    if last_id:
        headers["last-event-id"] = last_id
    async with (
        httpx.AsyncClient(base_url=f"http://{http}", timeout=50) as client,
        client.stream("GET", f"/events?{query}", headers=headers) as response,
    ):
        if response.status_code == 200:
            assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        yield Watcher(response, last_id)


async def refused(server: RunningServer, query: str = "", **headers: str) -> httpx.Response:
    """The refusal of a request."""
    async with watching(server, query, **headers) as watcher:
        assert watcher.response.status_code != 200
        await watcher.response.aread()
        return watcher.response
