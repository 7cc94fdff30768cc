"""A connection to the HTTP port that sends bytes as it likes."""

from __future__ import annotations

import asyncio
from typing import Any

from jobline_server.doors import OwnDoors
from jobline_server.testing import RunningServer
from tests.server.http_calls import client_of, post

PUSH = b'{"queue": "q", "payloads": ["aGk="]}'
WAITING_PULL = b'{"queues": [{"queue": "q"}], "wait": "50s"}'
SECONDS = 40.0


class Raw:
    """A connection that sends bytes as it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def to(cls, server: RunningServer) -> Raw:
        host, _, port = server.http.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def send_for_ever(self, data: bytes) -> None:
        """Sends the same again and again."""
        async with asyncio.timeout(SECONDS):
            while True:
                self.send(data)
                await self.writer.drain()
                await asyncio.sleep(0)

    async def reply(self) -> tuple[int, dict[str, str], bytes]:
        """The next reply: status, headers, body."""
        async with asyncio.timeout(SECONDS):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
            lines = head.split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines[1:] if line)
            length = int(headers.get("content-length", "0"))
            return int(lines[0].split(" ")[1]), headers, await self.reader.readexactly(length)

    async def is_closed(self) -> bool:
        """Waits until the server has closed it."""
        async with asyncio.timeout(SECONDS):
            try:
                while await self.reader.read(1 << 16):
                    pass
            except ConnectionError:
                pass
        self.writer.close()
        return True


def head(rpc: str = "JobService/Push", *headers: str) -> bytes:
    """The head of a call."""
    lines = [f"POST /jobline.v1.{rpc} HTTP/1.1", "Host: x", "Content-Type: application/json"]
    return "\r\n".join([*lines, *headers, "", ""]).encode()


def whole(rpc: str, body: bytes) -> bytes:
    """A whole request."""
    return head(rpc, f"Content-Length: {len(body)}") + body


async def is_served(server: RunningServer) -> bool:
    """Whether another caller is served."""
    async with client_of(server) as client:
        return (await post(client, "JobService/Push", PUSH)).status_code == 200


def port_of(server: RunningServer) -> Any:
    """Uvicorn's server, with its connections and tasks, behind the port."""
    doors = server.server._doors
    assert isinstance(doors, OwnDoors)
    assert doors._listener is not None
    return doors._listener._server
