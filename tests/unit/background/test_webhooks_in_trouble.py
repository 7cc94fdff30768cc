"""The task that tells webhooks, when something fails, is slow, or changes at the wrong time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobline_server.background import webhooks as of_task
from jobline_server.background.webhook_messages import found_in
from jobline_server.background.webhook_outcomes import Answer
from jobline_server.background.webhooks import TellWebhooks
from jobline_server.engine import limits
from jobline_server.engine.commands import Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import JobOptions
from jobline_server.engine.webhook import WebhookSettings
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.health import Health
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit, JobFilter, Selection
from tests.unit.background.conftest import Keeping
from tests.unit.background.test_webhooks import URL, create, run, task_of
from tests.unit.runtime.conftest import working
from tests.unit.runtime.shard_faults import a_world


async def push_to(runtime: Runtime, *urls: str, count: int = 1) -> None:
    """Pushes jobs with URLs of their own, and ends them."""
    for url in urls:
        push = Push(
            "mail", JobOptions(rules=JobRules(webhook=url)), payloads=Payloads.of([b"x"] * count)
        )
        await runtime.pushes.push(push)
    selection = Selection(filter=JobFilter(queue="mail"))
    await runtime.bulk.cancel_jobs(selection, dry_run=False, audit=Audit())


async def a_turn(until: Callable[[], object]) -> None:
    while not until():  # noqa: ASYNC110  # a turn of the loop at a time
        await asyncio.sleep(0)


async def test_urls_of_jobs_need_no_room_among_webhooks(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WEBHOOKS_MAX", 1)
    task, receivers = task_of(keeping.runtime, Answer(200))
    await create(keeping.runtime)
    await push_to(keeping.runtime, "http://a.example/")
    assert await run(task, keeping.clock) == {"queued": 2, "delivered": 2}
    assert len(receivers.sent) == 2


async def test_events_that_were_not_taken_are_read_again(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, receivers = task_of(keeping.runtime, Answer(200))
    await create(keeping.runtime)
    await run(task, keeping.clock)
    await keeping.complete()

    async def failing(*_arguments: object, **_more: object) -> int:
        raise OSError("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(keeping.runtime.webhooks, "queue_deliveries", failing)
        with pytest.raises(OSError, match="no answer"):
            await run(task, keeping.clock)
    assert receivers.sent == []
    assert await run(task, keeping.clock) == {"queued": 1, "delivered": 1}


async def test_steady_events_do_not_keep_it_from_sending(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is always one event more to read."""
    task, _ = task_of(keeping.runtime, Answer(200))
    await create(keeping.runtime)
    await keeping.complete()
    take = TellWebhooks._take

    async def taking(self: TellWebhooks, events: Any, counts: Any) -> None:
        await take(self, events, counts)
        if not keeping.runtime.webhooks.get_webhook("w").delivered:
            await keeping.complete()

    monkeypatch.setattr(TellWebhooks, "_take", taking)
    async with asyncio.timeout(10):
        counts = await run(task, keeping.clock)
    assert counts["delivered"] == counts["queued"] > 1


async def test_mistake_while_sending_is_tried_again(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    task, _ = task_of(keeping.runtime, Answer(200))
    await create(keeping.runtime)
    await keeping.complete()
    with monkeypatch.context() as patched:
        patched.setattr(of_task, "signed_headers", lambda *_: 1 / 0)
        assert await run(task, keeping.clock) == {"queued": 1, "retrying": 1}
    assert "a webhook was not sent" in caplog.text
    keeping.clock.advance(limits.DAY_MS)
    assert await run(task, keeping.clock) == {"delivered": 1}


async def test_stop_does_not_wait_for_a_slow_receiver(keeping: Keeping) -> None:
    task, receivers = task_of(keeping.runtime, Answer(200))
    keeping.runtime.at_stop = task.hurry
    await create(keeping.runtime)
    await keeping.complete()
    receivers.hold.clear()
    running = asyncio.create_task(task.run_once(keeping.clock.now()))
    await a_turn(lambda: receivers.sent)
    keeping.runtime.stop_waiting()
    async with asyncio.timeout(10):
        assert await running == {"queued": 1}
    await keeping.complete()
    assert await run(task, keeping.clock) == {}
    await task.finish()
    assert keeping.runtime.webhooks.get_webhook("w").pending == 2


async def test_run_that_is_reading_ends_at_a_stop(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, receivers = task_of(keeping.runtime, Answer(200))
    await create(keeping.runtime)
    await keeping.complete()
    take = TellWebhooks._take

    async def taking(self: TellWebhooks, events: Any, counts: Any) -> None:
        task.hurry()
        await take(self, events, counts)

    monkeypatch.setattr(TellWebhooks, "_take", taking)
    assert await run(task, keeping.clock) == {"queued": 1}
    assert receivers.sent == []


async def test_end_that_fails_does_not_keep_the_rest_of_a_stop(tmp_path: Path) -> None:
    clock = ManualClock()

    async def failing() -> None:
        raise OSError("no answer")

    async with working(tmp_path, clock) as runtime:
        await create(runtime)
        runtime.at_end = failing
    async with working(tmp_path, clock) as runtime:
        assert runtime.webhooks.get_webhook("w").pending == 0


async def test_slow_webhook_leaves_room_for_others(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the many URLs of jobs."""
    monkeypatch.setattr(of_task, "SENDING_MAX", of_task.OF_ONE_MAX + 1)
    task, receivers = task_of(keeping.runtime, Answer(200))
    receivers.hold.clear()
    await push_to(keeping.runtime, *(f"http://{n}.example/" for n in range(20)))
    running = asyncio.create_task(task.run_once(keeping.clock.now()))
    await a_turn(lambda: len(receivers.sent) == of_task.OF_ONE_MAX)
    await create(keeping.runtime)
    await keeping.complete()
    await a_turn(lambda: URL in {url for url, _ in receivers.sent})
    assert len(receivers.sent) == of_task.OF_ONE_MAX + 1
    receivers.hold.set()
    await running
    assert keeping.runtime.webhooks.get_webhook("w").delivered == 1
    assert not task._under_way


async def test_webhooks_take_turns(keeping: Keeping, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_task, "SENDING_MAX", 1)
    task, receivers = task_of(keeping.runtime, Answer(200))
    for name in ("a", "b"):
        await create(keeping.runtime, name)
    await keeping.complete(3)
    await run(task, keeping.clock)
    names = [message_id.split("_")[1] for _, message_id in receivers.sent]
    assert names in (["a", "b"] * 3, ["b", "a"] * 3)


async def test_without_its_shard_nothing_is_done(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        runtime, clock = world.runtime, world.runtime.core.clock
        assert isinstance(clock, ManualClock)
        task, _ = task_of(runtime, Answer(200))
        await create(runtime)
        slots = runtime.core.slots
        slots.close(slots[0], Health.FENCED, "lost")
        assert await run(task, clock) == {}
        await task.finish()


@pytest.mark.parametrize("how", ["updated", "replaced", "same"])
async def test_gone_is_said_of_the_url_that_was_asked(keeping: Keeping, how: str) -> None:
    calls = keeping.runtime.webhooks
    task, receivers = task_of(keeping.runtime, Answer(410))
    await create(keeping.runtime)
    await keeping.complete()
    receivers.hold.clear()
    running = asyncio.create_task(task.run_once(keeping.clock.now()))
    await a_turn(lambda: receivers.sent)
    if how == "updated":
        await calls.update_webhook("w", lambda before: replace(before, url="http://new.example/"))
    if how == "replaced":
        await calls.delete_webhook("w")
        await create(keeping.runtime)
    receivers.hold.set()
    await running
    view = calls.get_webhook("w")
    assert view.settings.disabled == (how == "same")
    assert view.failed == (how != "replaced")


async def test_changed_webhook_is_told_of_what_it_wants_now(keeping: Keeping) -> None:
    task, receivers = task_of(keeping.runtime, Answer(200))
    await create(keeping.runtime, queue="ma*")
    await keeping.complete()
    await run(task, keeping.clock)
    settings = WebhookSettings(url=URL, queue="other*")
    await keeping.runtime.webhooks.update_webhook("w", lambda _before: settings)
    await keeping.complete()
    await run(task, keeping.clock)
    await keeping.complete(queue="other1")
    await run(task, keeping.clock)
    assert len(receivers.sent) == 2


async def test_events_of_a_webhook_that_is_deleted_in_a_pause_go_to_no_later_one(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of its name has another receiver."""
    task, receivers = task_of(keeping.runtime, Answer(200))
    await create(keeping.runtime)
    await keeping.complete(3)

    async def recreate() -> None:
        await keeping.runtime.webhooks.delete_webhook("w")
        await create(keeping.runtime)

    def paused(*arguments: Any) -> Iterator[Any]:
        replacing = asyncio.ensure_future(recreate())
        while not replacing.done():
            yield None
        yield from found_in(*arguments)

    monkeypatch.setattr(of_task, "found_in", paused)
    await run(task, keeping.clock)
    assert not receivers.sent
