"""A silent name server holds up the names that it is asked for, and nothing else."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from jobline_server.background import webhook_names
from jobline_server.background.webhook_names import Lookups, TooManyLookups
from jobline_server.background.webhook_sender import Sender


class Silence:
    """A system whose names are not resolved until it is over."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.asked = threading.Semaphore(0)

    def getaddrinfo(self, host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        if host == "silent":
            self.asked.release()
            self.over.wait(30)
        return [(2, 1, 6, "", ("192.0.2.7", 80))]


@pytest.fixture
def silence(monkeypatch: pytest.MonkeyPatch) -> Iterator[Silence]:
    one = Silence()
    monkeypatch.setattr(socket, "getaddrinfo", one.getaddrinfo)
    yield one
    one.over.set()


async def test_names_are_resolved_as_the_system_does() -> None:
    assert "127.0.0.1" in await Lookups().resolve("127.0.0.1", 80)
    with pytest.raises(OSError):  # noqa: PT011  # any text
        await Lookups().resolve("no-such-host.invalid", 80)


async def test_silent_names_leave_room_for_others(silence: Silence) -> None:
    """For other names, and on the threads of the loop."""
    lookups = Lookups()
    silent = [asyncio.create_task(lookups.resolve("silent", 80)) for _ in range(31)]
    for _ in silent:
        await asyncio.to_thread(silence.asked.acquire)
    assert await lookups.resolve("other", 80) == ["192.0.2.7"]
    assert await asyncio.to_thread(int, "7") == 7
    silence.over.set()
    assert await asyncio.gather(*silent) == [["192.0.2.7"]] * 31


async def test_threads_are_bounded_also_when_nobody_waits(
    silence: Silence, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for one is not the fault of the host that it is for; its turn comes."""
    monkeypatch.setattr(webhook_names, "LOOKUPS_MAX", 1)
    monkeypatch.setattr(webhook_names, "WAIT_SECONDS", 0.05)
    lookups = Lookups()
    silent = asyncio.create_task(lookups.resolve("silent", 80))
    await asyncio.to_thread(silence.asked.acquire)
    silent.cancel()
    await asyncio.wait([silent])
    with pytest.raises(TooManyLookups):
        await lookups.resolve("other", 80)
    sender = Sender(allow_private=True, resolver=lookups.resolve)
    answer = await sender.send("http://other/", {}, b"", 0)
    assert (answer.is_unasked, answer.is_down) == (True, False)
    monkeypatch.setattr(webhook_names, "WAIT_SECONDS", 20.0)
    silence.over.set()
    assert await lookups.resolve("other", 80) == ["192.0.2.7"]


async def test_no_more_threads_is_a_failure_that_keeps_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lookups = Lookups()

    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        for _ in range(webhook_names.LOOKUPS_MAX + 1):
            with pytest.raises(RuntimeError):
                await lookups.resolve("127.0.0.1", 80)
    assert await lookups.resolve("127.0.0.1", 80) == ["127.0.0.1"]
