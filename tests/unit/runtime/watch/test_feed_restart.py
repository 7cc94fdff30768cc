"""Watching over restarts."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel
from jobline_server.runtime import checkpoints
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.conftest import opened
from tests.unit.runtime.watch.test_feed import push, work
from tests.unit.runtime.watching import Seen, now_of, seen_since


async def a_busy_life(runtime: Runtime) -> list[tuple[Seen, str]]:
    """Pushes, leases and acks lots, with jobs in memory among them; returns the events."""
    begun = await now_of(runtime)
    await push(runtime, 3)
    await push(runtime, 2, level=AckLevel.MEMORY)
    await work(runtime)
    await push(runtime, 2)
    return [(("BEGUN", 0), begun), *await seen_since(runtime, begun)]


def written(seen: list[tuple[Seen, str]]) -> list[Seen]:
    """Returns the events of written jobs: jobs in memory are lost with the process."""
    in_memory = {5, 6}
    return [event for event, _ in seen if event[1] not in in_memory]


async def test_after_a_crash_a_watch_goes_on_from_what_the_journal_holds(tmp_path: Path) -> None:
    """Trial A7, B2: once and in order, from any token."""
    async with opened(tmp_path, ManualClock()) as runtime:
        seen = await a_busy_life(runtime)
    async with opened(tmp_path, ManualClock()) as runtime:
        first_id = await push(runtime, 1)
        for index, (_, token) in enumerate(seen):
            rest = [event for event, _ in await seen_since(runtime, token)]
            assert rest == [*written(seen[index + 1 :]), ("PUSHED", first_id)]


async def test_what_a_checkpoint_folded_before_a_crash_is_gone(tmp_path: Path) -> None:
    """A watcher that missed events is refused; one that missed nothing goes on."""
    async with opened(tmp_path, ManualClock()) as runtime:
        seen = await a_busy_life(runtime)
        await runtime.checkpoints.take_due(everything=True)
        after = await now_of(runtime)
    async with opened(tmp_path, ManualClock()) as runtime:
        with pytest.raises(Refused) as refused:
            await seen_since(runtime, seen[0][1])
        assert refused.value.kind is RefusalKind.OFFSET_GONE
        assert await seen_since(runtime, after) == []


async def test_a_polite_stop_leaves_watchers_what_they_missed(tmp_path: Path) -> None:
    """Trial B2: a token is valid after a restart as after a crash; a long journal is folded."""
    async with opened(tmp_path, ManualClock()) as runtime:
        runtime.start()
        begun = await now_of(runtime)
        payloads = Payloads.of([b"x"])
        first_id = (
            await runtime.pushes.push(Push("mail", DEFAULT_OPTIONS, payloads=payloads))
        ).first_id
        await runtime.stop()
    async with opened(tmp_path, ManualClock()) as runtime:
        seen = [event for event, _ in await seen_since(runtime, begun)]
        assert seen == [("QUEUE_CREATED", 0), ("PUSHED", first_id)]


async def test_a_stop_folds_a_long_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next start shall not wait for it."""
    monkeypatch.setattr(checkpoints, "STOP_JOURNAL_BYTES", 10)
    async with opened(tmp_path, ManualClock()) as runtime:
        runtime.start()
        await runtime.pushes.push(Push("mail", DEFAULT_OPTIONS, payloads=Payloads.of([b"x"])))
        await runtime.stop()
    async with opened(tmp_path, ManualClock()) as runtime:
        assert [slot.position.journal_rows for slot in runtime.core.slots] == [0]
