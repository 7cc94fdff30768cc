"""Cleaning up after jobs that became stale or were deleted."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from jobline import AsyncCleanup, AsyncClient, Client, Event, EventKind, InvalidArgument, OffsetGone
from jobline._asynchronous import cleanup as cleanup_module
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.watch import kept_batches
from jobline_server.testing import RunningServer, ServerProcess, running_server
from tests.e2e.test_retention import HOUR, a_completed_job, retain

Seen = list[tuple[str, int]]


class Told:
    """A loop that is running, and what its handlers were told."""

    def __init__(self, cleanup: AsyncCleanup) -> None:
        self.cleanup = cleanup
        self.seen: Seen = []
        self.gaps = 0
        self._news = asyncio.Event()
        cleanup.on_stale(self._stale)
        cleanup.on_delete(self._deleted)
        cleanup.on_gap(self._gap)

    async def _stale(self, event: Event) -> None:
        self._tell(("stale", event.job_id))

    def _deleted(self, event: Event) -> None:
        self._tell(("deleted", event.job_id))

    def _gap(self) -> None:
        self.gaps += 1
        self._news.set()

    def _tell(self, what: tuple[str, int]) -> None:
        self.seen.append(what)
        self._news.set()

    async def until(self, count: int) -> Seen:
        """What was told, once that is so much."""
        async with asyncio.timeout(30):
            while len(self.seen) < count:
                self._news.clear()
                await self._news.wait()
        return self.seen

    async def begun(self) -> None:
        """Waits for the first call."""
        async with asyncio.timeout(30):
            await self._news.wait()


@asynccontextmanager
async def running(client: AsyncClient, file: Path) -> AsyncIterator[Told]:
    """A loop that runs for the length of the block, and is cancelled then, as by a crash."""
    told = Told(client.cleanup(file, queues=["mail"]))
    task = asyncio.ensure_future(told.cleanup.run())
    try:
        yield told
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_both_stages_are_told(
    client: AsyncClient, server: RunningServer, tmp_path: Path
) -> None:
    """Of jobs that ended any way; dead ones, too."""
    async with running(client, tmp_path / "position") as told:
        await told.begun()
        pushed = await client.push("mail", b"x")
        await client.jobs.cancel(pushed.id)
        other = await client.push("other", b"x")
        await client.jobs.cancel(other.id)
        await retain(server, HOUR + 1)
        assert await told.until(1) == [("stale", pushed.id)]
        await retain(server, HOUR + 1)
        assert await told.until(2) == [("stale", pushed.id), ("deleted", pushed.id)]

        dead = (await client.push("mail", b"x")).id
        (leased,) = await client.pull("mail")
        await client.fail(leased, "broken", then="dead")
        await retain(server, 7 * 24 * HOUR + 1)
        await retain(server, HOUR + 1)
        assert (await told.until(4))[2:] == [("stale", dead), ("deleted", dead)]
        assert told.gaps == 1


async def test_it_goes_on_where_it_was(
    client: AsyncClient, server: RunningServer, tmp_path: Path
) -> None:
    """What happened while it did not run comes then, and nothing that was handled."""
    file = tmp_path / "position"
    first = await a_completed_job(client)
    async with running(client, file) as told:
        await told.begun()
        await client.jobs.delete(first)
        assert await told.until(1) == [("deleted", first)]
    second = await a_completed_job(client)
    await client.jobs.delete(second)
    async with running(client, file) as told:
        assert await told.until(1) == [("deleted", second)]
        assert told.gaps == 0


async def test_a_handler_that_fails_is_called_again(
    client: AsyncClient,
    server: RunningServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a pause that grows, with what follows in its order, and each failure in the log."""
    pauses: list[float] = []

    async def at_once(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(cleanup_module, "sleep", at_once)
    first, second = await a_completed_job(client), await a_completed_job(client)
    tries = 0
    seen: list[int] = []
    begun = asyncio.Event()
    cleanup = client.cleanup(tmp_path / "position")
    cleanup.on_gap(begun.set)

    @cleanup.on_delete
    def remove(event: Event) -> None:
        nonlocal tries
        tries += 1
        if tries < 5:
            raise RuntimeError("the bucket is away")
        seen.append(event.job_id)
        if event.job_id == second:
            cleanup.stop()

    with caplog.at_level(logging.ERROR, "jobline.cleanup"):
        task = asyncio.ensure_future(cleanup.run())
        await begun.wait()
        await client.jobs.delete(first)
        await client.jobs.delete(second)
        async with asyncio.timeout(30):
            await task
    assert seen == [first, second]
    assert len(pauses) == 4
    assert pauses[3] > pauses[0]
    assert caplog.text.count("RuntimeError: the bucket is away") == 4
    assert f"DELETED of job {first}, try 4" in caplog.text


async def test_a_crash_in_a_handler_brings_the_event_again(
    client: AsyncClient, server: RunningServer, tmp_path: Path
) -> None:
    """At least once: the position moves on only when the handler has returned."""
    file = tmp_path / "position"
    job_id = await a_completed_job(client)
    called, begun = asyncio.Event(), asyncio.Event()
    cleanup = client.cleanup(file)
    cleanup.on_gap(begun.set)

    @cleanup.on_delete
    async def hang(_event: Event) -> None:
        called.set()
        await asyncio.Event().wait()

    task = asyncio.ensure_future(cleanup.run())
    await begun.wait()
    await client.jobs.delete(job_id)
    await called.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    async with running(client, file) as told:
        assert await told.until(1) == [("deleted", job_id)]


async def test_a_gap_is_told_or_raised(
    client: AsyncClient,
    server: RunningServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the events to resume from are gone; what happens from then on comes."""
    file = tmp_path / "position"
    async with running(client, file) as told:
        await told.begun()
        await client.push("mail", b"x")
    monkeypatch.setattr(kept_batches, "BATCHES_KEPT_MAX", 1)
    jobs = [await a_completed_job(client) for _ in range(3)]
    silent = client.cleanup(file)
    silent.on_delete(print)
    with pytest.raises(OffsetGone):
        await silent.run()
    async with running(client, file) as told:
        await told.begun()
        assert told.gaps == 1
        monkeypatch.undo()
        await client.jobs.delete(jobs[0])
        assert await told.until(1) == [("deleted", jobs[0])]


async def test_a_server_that_is_killed_loses_none(tmp_path: Path) -> None:
    """The loop connects again, and goes on behind the last event it had."""
    async with (
        ServerProcess(tmp_path / "data") as server,
        AsyncClient(server.address) as client,
        running(client, tmp_path / "position") as told,
    ):
        await told.begun()
        deleted: list[int] = []
        for life in range(6):
            job_id = await a_completed_job(client)
            await client.jobs.delete(job_id)
            deleted.append(job_id)
            if life % 2:
                await server.restart()
        assert await told.until(6) == [("deleted", job_id) for job_id in deleted]


async def test_it_wants_a_handler_and_a_file(client: AsyncClient, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="on_stale or on_delete"):
        await client.cleanup(tmp_path / "position").run()
    with pytest.raises(InvalidArgument, match="path of a file"):
        client.cleanup("")
    (tmp_path / "odd").write_bytes(b"\xff")
    cleanup = client.cleanup(tmp_path / "odd")
    cleanup.on_delete(print)
    with pytest.raises(InvalidArgument, match="no position"):
        await cleanup.run()
    (tmp_path / "odd").write_text("other")
    with pytest.raises(InvalidArgument, match="resume_token"):
        await cleanup.run()
    cleanup = client.cleanup(tmp_path / "nowhere" / "position")
    cleanup.on_delete(print)
    with pytest.raises(FileNotFoundError):
        await cleanup.run()


async def test_the_blocking_client_does_the_same(tmp_path: Path) -> None:
    clock = ManualClock()
    seen: list[tuple[EventKind, int]] = []
    begun = threading.Event()

    def work(address: str) -> None:
        with Client(address) as client:
            cleanup = client.cleanup(tmp_path / "position")
            cleanup.on_gap(begun.set)

            @cleanup.on_delete
            def remove(event: Event) -> None:
                seen.append((event.kind, event.job_id))
                cleanup.stop()

            cleanup.run()

    async with running_server(clock=clock) as server, AsyncClient(server.address) as client:
        working = asyncio.ensure_future(asyncio.to_thread(work, server.address))
        assert await asyncio.to_thread(begun.wait, 30)
        job_id = await a_completed_job(client)
        await client.jobs.delete(job_id)
        async with asyncio.timeout(30):
            await working
    assert seen == [(EventKind.DELETED, job_id)]
