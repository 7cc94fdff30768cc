"""Too many connections: which are closed, and when."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from jobline_server.background import connections, open_sockets
from jobline_server.background.connections import BoundConnections, least_needed
from jobline_server.background.open_sockets import Connection
from jobline_server.engine.values import Now

NOW = Now(0, 0)
MOST, OTHER = "127.0.0.2", "127.0.0.3"


class Port:
    """A port of this process, with what came in."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        # At all addresses: the ends of the clients, in this process too, get no port of its number.
        self._listener = stack.enter_context(socket.create_server(("", 0), backlog=512))
        self.number: int = self._listener.getsockname()[1]

    def connect(self, host: str = MOST) -> socket.socket:
        """Returns the client's end of a connection from a host."""
        client = self._stack.enter_context(
            socket.create_connection(("127.0.0.1", self.number), 5, source_address=(host, 0))
        )
        self._stack.enter_context(self._listener.accept()[0])
        return client


@pytest.fixture
def port() -> Iterator[Port]:
    with ExitStack() as stack:
        yield Port(stack)


def is_open(client: socket.socket) -> bool:
    """Whether the other end has not been shut."""
    client.setblocking(False)
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True


async def test_few_are_left_alone(port: Port) -> None:
    """As many as there may be."""
    clients = [port.connect() for _ in range(20)]
    bound = BoundConnections(lambda: {port.number}, 1_000)

    assert await bound.run_once(NOW) == {}
    assert all(map(is_open, clients))


async def test_the_host_with_the_most_loses_some(port: Port) -> None:
    """A caller who opens as many as it can takes no place of others."""
    first = port.connect(OTHER)
    many = [port.connect() for _ in range(200)]
    bound = BoundConnections(lambda: {port.number}, 100)

    assert await bound.run_once(NOW) == {"closed": 201 - 90}
    assert is_open(first)
    assert sum(map(is_open, many)) == 89
    assert await bound.run_once(NOW) == {"closed": 0}, "those that were closed count no more"


async def test_other_ports_are_not_touched(port: Port) -> None:
    """A program with a server inside has connections of its own."""
    clients = [port.connect() for _ in range(150)]

    assert await BoundConnections(lambda: {1}, 100).run_once(NOW) == {"closed": 0}
    assert all(map(is_open, clients))


async def test_the_longest_silent_goes_first() -> None:
    """Of each host; and no host keeps more than another that loses some."""
    silent = [Connection(at, (MOST, at), MOST, silent_ms=100 - at) for at in range(5)]
    other = [Connection(at, (OTHER, at), OTHER, silent_ms=1_000 + at) for at in range(5, 7)]

    assert least_needed([*silent, *other], 3) == silent[:3]
    assert least_needed([*silent, *other], 4) == [*silent[:3], other[1]]
    assert least_needed(silent, 9) == silent
    assert least_needed(silent, -1) == []


async def test_descriptors_run_short(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the process may have fewer than there may be connections."""
    many = [port.connect() for _ in range(100)]
    used = open_sockets.lowest_free()
    assert used is not None
    monkeypatch.setattr(connections, "_descriptors_max", lambda: used)
    over = used - int(used * connections.DESCRIPTORS_SHARE)

    closed = (await BoundConnections(lambda: {port.number}, 100_000).run_once(NOW))["closed"]

    assert closed == min(over, 100)
    assert sum(map(is_open, many)) == 100 - closed


async def test_none_is_left(port: Port) -> None:
    """With no descriptor at all for a look."""
    many = [port.connect() for _ in range(50)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = open_sockets.lowest_free()
    assert used is not None
    resource.setrlimit(resource.RLIMIT_NOFILE, (used, hard))
    try:
        assert open_sockets.lowest_free() is None
        closed = (await BoundConnections(lambda: {port.number}, 100_000).run_once(NOW))["closed"]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert 0 < closed <= 50
    assert sum(map(is_open, many)) == 50 - closed


async def test_one_that_ended_meanwhile_is_no_other(port: Port) -> None:
    """Its number may be that of somebody else by now."""
    port.connect()
    (found,) = await open_sockets.connections_at({port.number})
    next_one = os.dup(found.descriptor)
    try:
        assert not open_sockets.shut(found._replace(peer=(OTHER, 1)))
        assert not open_sockets.shut(found._replace(descriptor=1 << 20))
        assert open_sockets.shut(found)
    finally:
        os.close(next_one)


async def test_it_is_said_once_a_minute(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many come again."""
    said: list[dict[str, int]] = []

    class Log:
        def warning(self, _what: str, **fields: int) -> None:
            said.append(fields)

    monkeypatch.setattr(connections, "LOG", Log())
    bound = BoundConnections(lambda: {port.number}, 100)
    for _ in range(2):
        for _ in range(120):
            port.connect()
        await bound.run_once(NOW)

    assert said == [{"closed": 30, "connections": 120, "max_connections": 100}]


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("2001:db8:0:1::7", "2001:db8:0:1::"),
        ("fe80::7%eth0", "fe80::"),
    ],
)
def test_hosts(address: str, host: str) -> None:
    """One host has 64 bits of addresses of IPv6 for itself."""
    assert open_sockets._host(address) == host
