"""Calls on webhooks: they outlive the process, and are found by those who send and receive."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.webhook import (
    JOBS_WEBHOOK,
    Delivery,
    Try,
    TryOutcome,
    WebhookSettings,
)
from jobline_server.runtime.calls.webhooks import NewDeliveries
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.health import Health
from tests.unit.runtime.conftest import working
from tests.unit.runtime.shard_faults import a_world

URL = WebhookSettings(url="http://example.com/")
IN = WebhookSettings(incoming_queue="mail")


def delivery(name: str) -> Delivery:
    return Delivery(0, name, "t", b"{}", 0)


async def test_all_of_it_outlives_the_process(tmp_path: Path) -> None:
    """Folded into a checkpoint by the stop, or in the journal."""
    clock = ManualClock()
    async with working(tmp_path, clock) as runtime:
        calls = runtime.webhooks
        made = await calls.create_webhook("w", URL, b"one")
        await calls.rotate_secret("w", b"two")
        await calls.create_webhook("in", IN, b"in")
        await calls.queue_deliveries({"w": NewDeliveries([delivery("a"), delivery("b")])}, (7,))
        [webhook] = calls.outgoing()
        a = next(iter(webhook.pending.values()))
        tried = Try(a.number, "a", "t", 1, 2, 1, 200, TryOutcome.DELIVERED)
        await calls.note_tries({"w": [tried]})
        assert made.created_ms == clock.now().wall_ms
    async with working(tmp_path, clock) as runtime:
        calls = runtime.webhooks
        view = calls.get_webhook("w")
        assert (view.settings, view.pending, view.delivered) == (URL, 1, 1)
        assert view.previous_until_ms
        assert calls.told() == [7]
        [webhook] = calls.outgoing()
        assert webhook.secrets.valid(0) == (b"two", b"one")
        assert [one.id for one in webhook.pending.values()] == ["b"]
        found = webhook.pop_due(clock.now().wall_ms)
        assert found is not None
        assert (calls.list_tries("w", page_size=5, skip=0)) == ([tried], 0)
        secrets = calls.incoming("mail")
        assert secrets is not None
        assert secrets.current == b"in"
        assert runtime.core.load.tells_webhooks
        await calls.delete_webhook("w")
        with pytest.raises(Refused) as caught:
            calls.get_webhook("w")
        assert caught.value.kind is RefusalKind.WEBHOOK_NOT_FOUND


async def test_lists_are_paged(tmp_path: Path) -> None:
    async with working(tmp_path, ManualClock()) as runtime:
        calls = runtime.webhooks
        for name in ("b", "a", "c", "x"):
            await calls.create_webhook(name, URL, b"s")
        views, token = calls.list_webhooks(page_size=2, page_token="", prefix="")
        assert ([view.name for view in views], token) == (["a", "b"], "b")
        views, token = calls.list_webhooks(page_size=2, page_token=token, prefix="")
        assert ([view.name for view in views], token) == (["c", "x"], "")
        views, _ = calls.list_webhooks(page_size=2, page_token="", prefix="x")
        assert [view.name for view in views] == ["x"]
        tries = [
            Try(number, str(number), "t", 1, 2, 1, 500, TryOutcome.FAILED) for number in range(3)
        ]
        await calls.note_tries({"a": tries})
        first, after = calls.list_tries("a", page_size=2, skip=0)
        assert ([one.id for one in first], after) == (["2", "1"], 2)
        last, after = calls.list_tries("a", page_size=2, skip=after)
        assert ([one.id for one in last], after) == (["0"], 0)


async def test_webhook_of_jobs_comes_with_its_first_delivery(tmp_path: Path) -> None:
    async with working(tmp_path, ManualClock()) as runtime:
        calls = runtime.webhooks
        new = {JOBS_WEBHOOK: NewDeliveries([delivery("a")])}
        assert await calls.queue_deliveries(new, ()) == 1
        assert await calls.queue_deliveries(new, (), missed=True) == 0
        view = calls.get_webhook(JOBS_WEBHOOK)
        assert (view.pending, view.missed) == (1, 1)
        [webhook] = calls.outgoing()
        assert len(webhook.secrets.current) == 32
        assert await calls.queue_deliveries({"gone": NewDeliveries([delivery("a")])}, ()) == 0


@pytest.mark.parametrize("folded", [True, False])
async def test_deliveries_to_urls_of_jobs_are_sent_after_a_restart(
    tmp_path: Path, *, folded: bool
) -> None:
    clock = ManualClock()
    async with working(tmp_path, clock) as runtime:
        new = {JOBS_WEBHOOK: NewDeliveries([delivery("a")])}
        await runtime.webhooks.queue_deliveries(new, ())
        if folded:
            await runtime.checkpoints.take_due(everything=True)
    async with working(tmp_path, clock) as runtime:
        assert runtime.core.load.tells_webhooks


async def test_lost_shard_is_not_asked_for_the_webhooks_of_a_queue(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        calls, slots = world.runtime.webhooks, world.runtime.core.slots
        slots.close(slots[0], Health.FENCED, "lost")
        await calls.drop_queue("mail")
        assert not calls.is_here


async def test_test_is_a_delivery(tmp_path: Path) -> None:
    async with working(tmp_path, ManualClock()) as runtime:
        calls = runtime.webhooks
        await calls.create_webhook("w", URL, b"s")
        delivery_id = await calls.test_webhook("w")
        [webhook] = calls.outgoing()
        [waits] = webhook.pending.values()
        assert (waits.id, waits.type) == (delivery_id, "webhook.test")


async def test_disabled_webhook_accepts_nothing(tmp_path: Path) -> None:
    async with working(tmp_path, ManualClock()) as runtime:
        calls = runtime.webhooks
        await calls.create_webhook("in", IN, b"s")
        off = WebhookSettings(incoming_queue="mail", disabled=True)
        view = await calls.update_webhook("in", lambda _before: off)
        assert view.settings.disabled
        assert calls.incoming("mail") is None
        await calls.drop_queue("other")
        await calls.drop_queue("mail")
        assert calls.list_webhooks(page_size=5, page_token="", prefix="")[0] == []
