"""What happened in queues, minute by minute, as clients see it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jobline import AsyncClient, Client, InvalidArgument
from jobline.cli.root import build
from jobline_server.background.minutes import CloseMinutes
from jobline_server.runtime.clock import ManualClock
from jobline_server.storage.sqlite.directory import stores_in
from jobline_server.telemetry.queue_minutes import QueueMinute
from jobline_server.testing import RunningServer, running_server, running_server_in_thread


async def a_minute(server: RunningServer) -> None:
    """A minute goes by, and is closed."""
    server.advance(60_000)
    task = CloseMinutes(server.runtime.core, server.runtime.minutes)
    await task.run_once(server.runtime.core.clock.now())


async def test_history_of_a_queue_and_of_all() -> None:
    async with (
        running_server(clock=ManualClock()) as server,
        AsyncClient(server.address) as client,
    ):
        await client.push_many("mail", [b"a", b"b"])
        await client.push("other", b"c")
        await a_minute(server)
        await a_minute(server)
        now = datetime.fromtimestamp(server.runtime.core.wall_ms() / 1_000, UTC)
        [minute] = [one async for one in client.queues.history("mail")]
        assert (minute.pushed, minute.completed, minute.waited_p50) == (2, 0, None)
        assert now - timedelta(minutes=4) <= minute.start_time <= now
        assert [one.pushed async for one in client.queues.history()] == [3]
        assert [one async for one in client.queues.history("mail", now)] == []
        with pytest.raises(InvalidArgument, match="start_time"):
            [one async for one in client.queues.history("mail", now, now - timedelta(hours=1))]


async def kept_minutes(data: Path, first: int, count: int) -> None:
    """A store has this many minutes of queue mail, and of all queues together."""
    stores = stores_in(data)
    await stores.store.open(1)
    await stores.ended_store.open()
    minutes = [
        QueueMinute(queue, first + at, at + 1, 2, 3, 4, 5, 60_000)
        for queue in ("mail", "")
        for at in range(count)
    ]
    await stores.minutes.add(minutes)
    await stores.close()


async def test_a_long_history_comes_in_parts(tmp_path: Path) -> None:
    """A call returns a day at most."""
    clock = ManualClock()
    first = clock.now().wall_ms // 60_000 - 3_000
    await kept_minutes(tmp_path, first, 3_000)
    async with (
        running_server(tmp_path, clock=clock) as server,
        AsyncClient(server.address) as client,
    ):
        start = datetime.fromtimestamp(first * 60, UTC)
        end = start + timedelta(minutes=2_879)
        for last, count in ((None, 3_000), (end, 2_880)):
            found = [one.pushed async for one in client.queues.history("mail", start, last)]
            assert found == [*range(1, count + 1)]


async def test_history_on_the_command_line(tmp_path: Path) -> None:
    now = int(datetime.now(UTC).timestamp())
    await kept_minutes(tmp_path, now // 60 - 10, 3)

    def look() -> None:
        with running_server_in_thread(data=tmp_path) as server:
            runner = CliRunner(env={"JOBLINE_SERVER": server.address, "COLUMNS": "200"})
            shown = runner.invoke(build(), ["queue", "history", "mail"]).stdout
            assert "1 min" in shown
            assert "waited p95" in shown
            nothing = runner.invoke(build(), ["queue", "history", "--since", "5m"])
            assert "Nothing happened" in nothing.output
            with Client(server.address) as client:
                assert len(list(client.queues.history("mail"))) == 3
            # From here on there is a fourth minute, once this one is over.
            assert runner.invoke(build(), ["push", "mail", "x"]).exit_code == 0
            for words in (
                ["queue", "get", "mail"],
                ["top", "mail", "--limit", "1"],
                ["top", "--limit", "1"],
            ):
                assert "waited p95" in runner.invoke(build(), words).stdout, words

    await asyncio.to_thread(look)
