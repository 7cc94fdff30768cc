"""Each minute is closed soon after its end."""

from __future__ import annotations

from jobline_server.background.minutes import CloseMinutes
from jobline_server.engine.limits import MINUTE_MS
from tests.unit.background.conftest import QUEUE, Keeping


async def test_the_minute_that_is_over_is_kept(keeping: Keeping) -> None:
    task = CloseMinutes(keeping.runtime.core, keeping.runtime.minutes)
    began_ms = keeping.clock.now().wall_ms
    await keeping.complete(3)
    await keeping.die(2)
    await keeping.cancel(1)
    keeping.clock.advance(round(task.every_seconds * 1_000))
    assert await task.run_once(keeping.clock.now()) == {"queues": 1, "deleted": 0}
    [minute] = await keeping.runtime.minutes.find(QUEUE, 0, 1 << 40)
    assert minute.minute == began_ms // MINUTE_MS
    assert (minute.pushed, minute.completed, minute.dead) == (6, 3, 2)


async def test_a_run_follows_the_end_of_each_minute(keeping: Keeping) -> None:
    task = CloseMinutes(keeping.runtime.core, keeping.runtime.minutes)
    for wait_ms in (0, 1, 30_000, 59_999):
        keeping.clock.advance(wait_ms)
        after_ms = keeping.clock.now().wall_ms + round(task.every_seconds * 1_000)
        assert 0 <= after_ms % MINUTE_MS <= 100


async def test_nothing_is_written_to_a_full_disk(keeping: Keeping) -> None:
    task = CloseMinutes(keeping.runtime.core, keeping.runtime.minutes)
    await keeping.complete(1)
    keeping.runtime.core.commits.disk_full = True
    assert await task.run_once(keeping.clock.now()) == {}
    assert not await keeping.runtime.minutes.find(QUEUE, 0, 1 << 40)


async def test_a_minute_is_closed_once(keeping: Keeping) -> None:
    """Where the clock stands still, what happens afterwards is of the minute that goes on."""
    task = CloseMinutes(keeping.runtime.core, keeping.runtime.minutes)
    await keeping.complete(1)
    keeping.clock.advance(MINUTE_MS)
    assert await task.run_once(keeping.clock.now()) == {"queues": 1, "deleted": 0}
    await keeping.complete(1)
    assert await task.run_once(keeping.clock.now()) == {}


async def test_it_is_due_at_the_end_of_a_minute_with_news(keeping: Keeping) -> None:
    task = CloseMinutes(keeping.runtime.core, keeping.runtime.minutes)
    assert await task.next_ms(keeping.clock.now()) is None
    await keeping.complete(1)
    now = keeping.clock.now()
    assert await task.next_ms(now) == (now.wall_ms // MINUTE_MS + 1) * MINUTE_MS
    keeping.clock.advance(MINUTE_MS)
    await task.run_once(keeping.clock.now())


async def test_it_is_due_at_the_end_of_the_next_minute_too(keeping: Keeping) -> None:
    """Or a queue would be as busy for ever where a clock is moved by hand."""
    task = CloseMinutes(keeping.runtime.core, keeping.runtime.minutes)
    await keeping.complete(1)
    while (next_ms := await task.next_ms(keeping.clock.now())) is not None:
        keeping.clock.advance(next_ms - keeping.clock.now().wall_ms)
        await task.run_once(keeping.clock.now())
    queue = keeping.runtime.core.slots.find_queue(QUEUE)
    assert queue is not None
    assert keeping.runtime.minutes.activity(queue) == 0
