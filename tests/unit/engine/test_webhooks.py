"""Webhooks are created and changed; deliveries wait within bounds, and tries are counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.admin import decide_retry
from jobline_server.engine.decide.webhooks import (
    decide_create_webhook,
    decide_delete_webhook,
    decide_note_tries,
    decide_queue_deliveries,
    decide_rotate_secret,
    decide_update_webhook,
    existing_webhook,
)
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import JobOptions
from jobline_server.engine.webhook import (
    AHEAD_MS_MAX,
    JOBS_WEBHOOK,
    RETRY_MS_MAX,
    Delivery,
    Secrets,
    Try,
    TryOutcome,
    Webhook,
    WebhookSettings,
)
from tests.unit.engine.world import World

URL = WebhookSettings(url="http://example.com/")
INCOMING = WebhookSettings(incoming_queue="mail")
NAMED = JobOptions(rules=JobRules(webhook="http://example.com/"))


def made(world: World, name: str = "w", settings: WebhookSettings = URL) -> Webhook:
    return decide_create_webhook(world.shard, world.now, name, settings, b"secret")


def delivery(name: str, due_ms: int = 0, size: int = 10) -> Delivery:
    return Delivery(0, name, "job.completed", b"x" * size, due_ms)


def queued(world: World, *names: str, webhook: str = "w", size: int = 10) -> int:
    waiting = [delivery(name, world.now.wall_ms, size) for name in names]
    return decide_queue_deliveries(world.shard, world.now, webhook, waiting)


def tried(world: World, one: Delivery, outcome: TryOutcome, next_ms: int = 0) -> None:
    result = Try(one.number, one.id, one.type, 1, 2, one.tries + 1, 500, outcome, "", next_ms)
    decide_note_tries(world.shard, world.now, "w", [result])


def ids(webhook: Webhook) -> list[str]:
    return [one.id for one in webhook.pending.values()]


def refusal(kind: RefusalKind, act, *arguments) -> Refused:
    with pytest.raises(Refused) as caught:
        act(*arguments)
    assert caught.value.kind is kind
    return caught.value


def test_webhook_is_created_once(world):
    webhook = made(world)
    assert (webhook.created_ms, webhook.secrets.current) == (world.now.wall_ms, b"secret")
    assert world.shard.load.tells_webhooks
    assert refusal(RefusalKind.WEBHOOK_EXISTS, made, world).field == "webhook"
    made(world, "in", INCOMING)
    refused = refusal(RefusalKind.WEBHOOK_EXISTS, made, world, "in2", INCOMING)
    assert refused.field == "settings.incoming_queue"


def test_incoming_webhook_costs_no_events(world):
    made(world, "in", INCOMING)
    assert not world.shard.load.tells_webhooks


def test_webhooks_are_bounded(world, monkeypatch):
    monkeypatch.setattr(limits, "WEBHOOKS_MAX", 1)
    made(world)
    refusal(RefusalKind.WEBHOOKS_FULL, made, world, "other")


def test_webhook_of_the_urls_of_jobs_is_not_counted(world, monkeypatch):
    """It is made when a job needs it: that must not fail, nor take the place of another."""
    monkeypatch.setattr(limits, "WEBHOOKS_MAX", 2)
    made(world)
    made(world, JOBS_WEBHOOK, WebhookSettings())
    made(world, "other")
    refusal(RefusalKind.WEBHOOKS_FULL, made, world, "third")
    decide_delete_webhook(world.shard, world.now, JOBS_WEBHOOK)
    made(world, JOBS_WEBHOOK, WebhookSettings())


def test_delivery_that_waits_has_events_read(world):
    made(world, JOBS_WEBHOOK, WebhookSettings())
    assert not world.shard.load.tells_webhooks
    queued(world, "a", webhook=JOBS_WEBHOOK)
    assert world.shard.load.tells_webhooks


def test_settings_change_but_not_the_direction(world):
    webhook = made(world)
    off = replace(URL, disabled=True)
    decide_update_webhook(world.shard, world.now, "w", off)
    assert webhook.settings == off
    world.commit()
    decide_update_webhook(world.shard, world.now, "w", off)
    assert world.commit() == []
    for settings in (INCOMING, WebhookSettings()):
        refused = refusal(
            RefusalKind.INVALID_FIELD,
            decide_update_webhook, world.shard, world.now, "w", settings,
        )  # fmt: skip
        assert refused.field == "settings.url"
    made(world, "in", INCOMING)
    other = WebhookSettings(incoming_queue="other")
    refused = refusal(
        RefusalKind.INVALID_FIELD, decide_update_webhook, world.shard, world.now, "in", other
    )
    assert refused.field == "settings.incoming_queue"


def test_secret_before_is_valid_for_a_day(world):
    webhook = made(world)
    decide_rotate_secret(world.shard, world.now, "w", b"new")
    now_ms = world.now.wall_ms
    until_ms = now_ms + limits.WEBHOOK_SECRET_OVERLAP_MS
    assert webhook.secrets == Secrets(b"new", b"secret", until_ms)
    assert webhook.secrets.valid(until_ms - 1) == (b"new", b"secret")
    assert webhook.secrets.valid(until_ms) == (b"new",)
    world.commit()
    decide_rotate_secret(world.shard, world.now, "w", b"new")
    assert world.commit() == []


def test_delivery_is_queued_once(world):
    """The same event read again, after a crash, is no second delivery."""
    webhook = made(world)
    assert queued(world, "a", "b") == 2
    assert queued(world, "b", "c") == 1
    assert ids(webhook) == ["a", "b", "c"]
    assert len({one.number for one in webhook.pending.values()}) == 3


def test_due_deliveries_come_in_order_of_their_time(world):
    webhook, now_ms = made(world), world.now.wall_ms
    assert webhook.due_ms() is None
    queued(world, "a", "b")
    first = webhook.pop_due(now_ms)
    assert first is not None
    assert first.id == "a"
    second = webhook.pop_due(now_ms)
    assert second is not None
    assert webhook.pop_due(now_ms) is None
    webhook.arm(second.number, now_ms + 5)
    assert webhook.pop_due(now_ms + 4) is None
    assert webhook.due_ms() == now_ms + 5
    tried(world, second, TryOutcome.DELIVERED)
    assert webhook.due_ms() is None
    webhook.arm(second.number, now_ms)
    assert webhook.pop_due(now_ms) is None


def test_delivery_is_due_once_however_often_it_was_tried(world):
    """After recovery all its tries are applied before the first is asked for."""
    webhook, now_ms = made(world), world.now.wall_ms
    queued(world, "a")
    for at_ms in (now_ms - 3, now_ms - 2, now_ms - 1, now_ms - 2):
        (a,) = webhook.pending.values()
        tried(world, a, TryOutcome.RETRYING, next_ms=at_ms)
    assert webhook.due_ms() == now_ms - 2
    due = webhook.pop_due(now_ms)
    assert due is not None
    assert (due.id, due.tries) == ("a", 4)
    assert webhook.pop_due(now_ms) is None


def test_clock_that_was_set_back_delays_nothing(world):
    """No delivery waits as long as this for its next try."""
    webhook, now_ms = made(world), world.now.wall_ms
    queued(world, "a")
    (a,) = webhook.pending.values()
    assert webhook.pop_due(now_ms - RETRY_MS_MAX) is None
    assert webhook.pop_due(now_ms - AHEAD_MS_MAX) is None
    assert webhook.pop_due(now_ms - AHEAD_MS_MAX - 1) == a


def test_too_many_deliveries_drop_the_oldest(world, monkeypatch):
    monkeypatch.setattr(limits, "WEBHOOK_PENDING_MAX", 2)
    webhook = made(world)
    queued(world, "a", "b")
    queued(world, "c")
    assert (ids(webhook), webhook.dropped) == (["b", "c"], 1)
    decide_queue_deliveries(world.shard, world.now, "w", [], dropped_early=7)
    assert webhook.dropped == 8


def test_too_many_bytes_drop_the_oldest_of_the_same_webhook(world, monkeypatch):
    webhook, other = made(world), made(world, "other")
    size = replace(delivery("a"), url="").size()
    monkeypatch.setattr(limits, "WEBHOOK_PENDING_BYTES_MAX", 2 * size)
    queued(world, "a", webhook="other")
    queued(world, "b")
    queued(world, "c")
    assert (ids(other), ids(webhook)) == (["a"], ["c"])
    assert world.shard.webhooks.pending_bytes() == 2 * size


def test_each_outcome_is_counted(world):
    webhook = made(world)
    queued(world, "a", "b", "c", "d")
    a, b, c, d = webhook.pending.values()
    tried(world, a, TryOutcome.DELIVERED)
    tried(world, b, TryOutcome.FAILED)
    tried(world, c, TryOutcome.RETRYING, next_ms=9)
    tried(world, d, TryOutcome.GONE)
    assert (webhook.delivered, webhook.failed) == (1, 2)
    (again,) = webhook.pending.values()
    assert (again.id, again.number, again.tries, again.due_ms) == ("c", c.number, 1, 9)
    assert webhook.settings.disabled
    assert "410" in webhook.disabled_reason
    assert [one.id for one in webhook.tries] == ["a", "b", "c", "d"]
    decide_update_webhook(world.shard, world.now, "w", URL)
    assert webhook.disabled_reason == ""


def test_result_of_a_delivery_that_is_gone_changes_nothing_but_counts(world):
    """It was dropped while it was under way."""
    webhook = made(world)
    queued(world, "a")
    (a,) = webhook.pending.values()
    tried(world, a, TryOutcome.DELIVERED)
    tried(world, a, TryOutcome.RETRYING, next_ms=9)
    tried(world, a, TryOutcome.FAILED)
    assert (ids(webhook), webhook.delivered, webhook.failed) == ([], 1, 1)
    assert not webhook.drop(a.number)


def test_the_last_tries_are_kept(world, monkeypatch):
    monkeypatch.setattr(limits, "WEBHOOK_TRIES_KEPT", 2)
    webhook = made(world)
    queued(world, "a", "b", "c")
    for one in [*webhook.pending.values()]:
        tried(world, one, TryOutcome.DELIVERED)
    assert [one.id for one in webhook.tries] == ["b", "c"]


def test_webhook_goes_with_its_deliveries(world):
    made(world)
    made(world, "in", INCOMING)
    queued(world, "a", "b")
    decide_delete_webhook(world.shard, world.now, "w")
    decide_delete_webhook(world.shard, world.now, "in")
    webhooks = world.shard.webhooks
    assert not len(webhooks)
    assert not webhooks.deliveries
    assert webhooks.find_incoming("mail") is None
    assert not world.shard.changes.webhook_deliveries.to_write
    refusal(RefusalKind.WEBHOOK_NOT_FOUND, existing_webhook, world.shard, "w")
    world.commit()
    decide_note_tries(world.shard, world.now, "w", [])
    assert world.commit() == []


def test_where_to_resume_is_the_newest_that_any_fact_says(world):
    webhook, other = made(world), made(world, "other")
    assert world.shard.webhooks.told() == []
    decide_queue_deliveries(world.shard, world.now, "w", [], told=(3, 5), missed=True)
    decide_queue_deliveries(world.shard, world.now, "other", [], told=(4, 4))
    assert (webhook.missed, other.missed) == (1, 0)
    assert world.shard.webhooks.told() == [4, 5]


@pytest.mark.parametrize("how", ["lot", "rows", "retried"])
def test_job_with_a_url_has_events_made(world, how):
    """From its push on, wherever it comes from."""
    if how == "lot":
        world.plain(b"x", options=NAMED)
    else:
        job_id = world.row(rules=NAMED.rules)
    if how == "retried":
        world.ack([(job_id, world.one().delivery)])
        state, record = world.ended()[job_id]
        world.shard.load.tells_webhooks = False
        decide_retry(world.shard, world.now, [(record, state)])
    assert world.shard.load.tells_webhooks
