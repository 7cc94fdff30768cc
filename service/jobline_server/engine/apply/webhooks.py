"""Applies the facts of webhooks."""

from __future__ import annotations

from dataclasses import replace

from jobline_server.engine import limits
from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.state import ShardState
from jobline_server.engine.webhook import Try, TryOutcome, Webhook
from jobline_server.engine.webhook_entries import (
    WebhookChanged,
    WebhookDeleted,
    WebhookProgressed,
)

GONE = "the receiver answered 410 Gone"


def apply_webhook_changed(shard: ShardState, fact: WebhookChanged, _offset: int) -> None:
    """Creates a webhook, or changes its settings and secrets."""
    webhook = shard.webhooks.find(fact.name)
    if webhook is None:
        shard.use_ids(fact.number, 1)
        webhook = Webhook(fact.name, fact.number, fact.settings, fact.secrets)
        webhook.created_ms = fact.at_ms
        webhook.told = fact.told
        shard.webhooks.put(webhook)
    webhook.settings = fact.settings
    webhook.secrets = fact.secrets
    webhook.changed_ms = fact.at_ms
    if not fact.settings.disabled:
        webhook.disabled_reason = ""
    if fact.settings.url:
        shard.load.tells_webhooks = True
    shard.changes.webhooks.to_write.add(fact.name)


def apply_webhook_deleted(shard: ShardState, fact: WebhookDeleted, _offset: int) -> None:
    """Deletes a webhook, with the deliveries that wait."""
    webhook = shard.webhooks.by_name[fact.name]
    _forget(shard, shard.webhooks.drop(webhook))
    shard.changes.webhooks.to_write.discard(fact.name)
    # It may not be in a checkpoint yet: removing nothing does no harm.
    shard.changes.webhooks.to_delete.append(webhook.number)


def apply_webhook_progressed(shard: ShardState, fact: WebhookProgressed, _offset: int) -> None:
    """Adds deliveries, counts tries, and removes deliveries that are over."""
    webhook = shard.webhooks.by_name[fact.name]
    for delivery in fact.queued:
        shard.use_ids(delivery.number, 1)
        shard.webhooks.put_delivery(webhook, delivery)
        shard.changes.webhook_deliveries.to_write.add(delivery.number)
        shard.load.tells_webhooks = True
    dropped = [number for number in fact.dropped if shard.webhooks.drop_delivery(number)]
    _forget(shard, dropped)
    webhook.dropped += len(dropped) + fact.dropped_early
    for one in fact.tries:
        _count(shard, webhook, one)
    webhook.tries = (*webhook.tries, *fact.tries)[-limits.WEBHOOK_TRIES_KEPT :]
    webhook.missed += fact.missed
    webhook.told = fact.told or webhook.told
    shard.changes.webhooks.to_write.add(fact.name)


def _count(shard: ShardState, webhook: Webhook, one: Try) -> None:
    if one.outcome is TryOutcome.RETRYING:
        delivery = webhook.pending.get(one.number)
        if delivery is not None:
            again = replace(delivery, tries=one.attempt, due_ms=one.next_ms)
            shard.webhooks.put_delivery(webhook, again)
            shard.changes.webhook_deliveries.to_write.add(one.number)
        return
    if shard.webhooks.drop_delivery(one.number):
        _forget(shard, [one.number])
    if one.outcome is TryOutcome.DELIVERED:
        webhook.delivered += 1
        return
    webhook.failed += 1
    if one.outcome is TryOutcome.GONE:
        webhook.settings = replace(webhook.settings, disabled=True)
        webhook.disabled_reason = GONE


def _forget(shard: ShardState, numbers: list[int]) -> None:
    shard.changes.webhook_deliveries.to_write.difference_update(numbers)
    shard.changes.webhook_deliveries.to_delete += numbers


APPLY: ApplyTable = {
    WebhookChanged: apply_webhook_changed,
    WebhookDeleted: apply_webhook_deleted,
    WebhookProgressed: apply_webhook_progressed,
}
