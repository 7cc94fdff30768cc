"""The task that tells webhooks: tries at their times, bounds, stops and full disks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jobline_server.background import webhooks as of_task
from jobline_server.background.webhook_outcomes import PAUSES_MS, Answer
from jobline_server.background.webhook_sender import Sender
from jobline_server.background.webhooks import TellWebhooks
from jobline_server.engine import limits
from jobline_server.engine.commands import Push
from jobline_server.engine.limits import DAY_MS
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import JobOptions
from jobline_server.engine.webhook import WebhookSettings
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit, JobFilter, Selection
from tests.unit.background.conftest import Keeping
from tests.unit.runtime.conftest import working

URL = "http://hook.example/"


class Receivers(Sender):
    """Takes messages in the place of the network; answers as it is told, the last one again."""

    def __init__(self, *answers: Answer) -> None:
        super().__init__(allow_private=False)
        self.answers = [*answers]
        self.sent: list[tuple[str, str]] = []
        self.hold = asyncio.Event()
        self.hold.set()

    async def send(
        self, url: str, headers: Mapping[str, str], _body: bytes, _now_ms: int
    ) -> Answer:
        self.sent.append((url, headers["webhook-id"]))
        await self.hold.wait()
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def task_of(runtime: Runtime, *answers: Answer) -> tuple[TellWebhooks, Receivers]:
    receivers = Receivers(*answers)
    return TellWebhooks(runtime.core, runtime.webhooks, runtime.follower, receivers), receivers


async def create(runtime: Runtime, name: str = "w", **settings: Any) -> None:
    await runtime.webhooks.create_webhook(name, WebhookSettings(url=URL, **settings), b"s" * 32)


async def run(task: TellWebhooks, clock: ManualClock) -> dict[str, int]:
    counts = await task.run_once(clock.now())
    return {name: count for name, count in counts.items() if count}


async def test_without_webhooks_nothing_is_done(keeping: Keeping) -> None:
    task, _ = task_of(keeping.runtime, Answer(200))
    await keeping.complete()
    assert await run(task, keeping.clock) == {}
    assert task.every_seconds == of_task.AT_REST_SECONDS
    await task.finish()


async def test_eight_tries_over_a_day(keeping: Keeping) -> None:
    """Each at its time and with the same id; then it is given up."""
    task, receivers = task_of(keeping.runtime, Answer(500))
    await create(keeping.runtime)
    await keeping.complete()
    assert await run(task, keeping.clock) == {"queued": 1, "retrying": 1}
    began_ms = keeping.clock.now().wall_ms
    for pause_ms in PAUSES_MS:
        keeping.clock.advance(round(pause_ms * 0.85))
        assert await run(task, keeping.clock) == {}
        keeping.clock.advance(round(pause_ms * 0.3))
        await run(task, keeping.clock)
    assert len(receivers.sent) == 8
    assert len({*receivers.sent}) == 1
    assert keeping.clock.now().wall_ms - began_ms < 1.3 * DAY_MS
    view = keeping.runtime.webhooks.get_webhook("w")
    assert (view.pending, view.failed) == (0, 1)


async def test_breaker_spares_a_host_that_is_down(keeping: Keeping) -> None:
    """Of a hundred deliveries a few find out; the others wait, and none uses up a try."""
    task, receivers = task_of(keeping.runtime, Answer(error="down"))
    await create(keeping.runtime)
    await keeping.complete(100)
    await run(task, keeping.clock)
    assert len(receivers.sent) < 10
    receivers.answers = [Answer(200)]
    keeping.clock.advance(DAY_MS)
    while keeping.runtime.webhooks.get_webhook("w").pending:
        await run(task, keeping.clock)
        keeping.clock.advance(1_000)
    assert keeping.runtime.webhooks.get_webhook("w").delivered == 100


async def test_oldest_deliveries_are_dropped_and_counted(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WEBHOOK_PENDING_MAX", 10)
    task, receivers = task_of(keeping.runtime, Answer(200))
    await create(keeping.runtime)
    first_id, *_, last_id = await keeping.complete(1_000)
    await run(task, keeping.clock)
    view = keeping.runtime.webhooks.get_webhook("w")
    assert (view.delivered, view.dropped) == (10, 990)
    assert last_id - first_id == 999
    assert len({*receivers.sent}) == 10


async def test_jobs_with_urls_of_their_own(keeping: Keeping) -> None:
    """A host that is slow holds up no other."""
    runtime = keeping.runtime
    task, receivers = task_of(runtime, Answer(200))
    for host in ("a", "b"):
        options = JobOptions(rules=JobRules(webhook=f"http://{host}.example/"))
        push = Push("mail", options, payloads=Payloads.of([b"x"] * 6))
        await runtime.pushes.push(push)
    selection = Selection(filter=JobFilter(queue="mail"))
    await runtime.bulk.cancel_jobs(selection, dry_run=False, audit=Audit())
    await run(task, keeping.clock)
    keeping.clock.advance(1_000)
    await run(task, keeping.clock)
    assert len(receivers.sent) == 12
    assert {url for url, _ in receivers.sent} == {"http://a.example/", "http://b.example/"}


async def test_full_disk_sends_nothing(keeping: Keeping) -> None:
    """It could not be noted, and would be sent again and again."""
    task, receivers = task_of(keeping.runtime, Answer(200))
    await create(keeping.runtime)
    await keeping.complete()
    keeping.runtime.core.commits.disk_full = True
    assert await run(task, keeping.clock) == {}
    assert receivers.sent == []
    keeping.runtime.core.commits.disk_full = False
    assert await run(task, keeping.clock) == {"queued": 1, "delivered": 1}


async def test_stop_makes_durable_what_is_known(tmp_path: Path) -> None:
    """A delivery under way is sent again; what nobody had read is not missed."""
    clock = ManualClock()
    async with working(tmp_path, clock) as runtime:
        task, receivers = task_of(runtime, Answer(200))
        runtime.at_end = task.finish
        keeping = Keeping(runtime, clock)
        await create(runtime)
        await keeping.complete()
        receivers.hold.clear()
        running = asyncio.create_task(task.run_once(clock.now()))
        while not receivers.sent:  # noqa: ASYNC110  # a turn of the loop at a time
            await asyncio.sleep(0)
        await keeping.complete()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    async with working(tmp_path, clock) as runtime:
        task, receivers = task_of(runtime, Answer(200))
        assert await run(task, clock) == {"delivered": 2}
        assert runtime.webhooks.get_webhook("w").missed == 0


async def test_events_that_are_gone_are_said(keeping: Keeping) -> None:
    task, _ = task_of(keeping.runtime, Answer(200))
    await create(keeping.runtime)
    await run(task, keeping.clock)
    keeping.runtime.feed._drop(10)
    await keeping.complete()
    keeping.runtime.feed._drop(1)
    assert (await run(task, keeping.clock))["missed"] == 1
    assert keeping.runtime.webhooks.get_webhook("w").missed == 1
