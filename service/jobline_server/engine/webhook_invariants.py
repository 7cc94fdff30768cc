"""What holds of webhooks between any two commands. `invariants` has the list of all checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain

from jobline_server.engine import limits
from jobline_server.engine.items import Item
from jobline_server.engine.shard import Shard
from jobline_server.engine.webhook import Webhook


def webhooks_add_up(shard: Shard) -> str:
    """G27: each delivery that waits is of a webhook that is there, is counted, and is due once; no
    two of a webhook are of the same event.
    """
    table = shard.webhooks
    waiting = {
        number: (webhook, delivery)
        for webhook in table.by_name.values()
        for number, delivery in webhook.pending.items()
    }
    if table.deliveries != waiting:
        return f"deliveries {[*table.deliveries]} are kept, webhooks have {[*waiting]}"
    incoming = {
        webhook.settings.incoming_queue: webhook
        for webhook in table.by_name.values()
        if webhook.settings.incoming_queue
    }
    if table.by_incoming != incoming:
        return f"webhooks of queues {[*table.by_incoming]} are kept, there are {[*incoming]}"
    numbers = [*waiting, *(webhook.number for webhook in table.by_name.values())]
    if len(numbers) != len(set(numbers)) or max(numbers, default=0) >= shard.next_id():
        return f"numbers {numbers} are not distinct ids below {shard.next_id()}"
    if len({len(webhook.told) for webhook in table.by_name.values() if webhook.told}) > 1:
        return "webhooks were told of the journals of different shards"
    for name, webhook in table.by_name.items():
        problem = _counts(webhook) or _due(webhook)
        if problem or webhook.name != name:
            return f"webhook {name} {problem or f'is named {webhook.name}'}"
    return ""


def _counts(webhook: Webhook) -> str:
    pending = webhook.pending
    if list(pending) != sorted(pending) or any(n != one.number for n, one in pending.items()):
        return f"has deliveries {[*pending]} in another order than that of their numbers"
    if len(pending) > limits.WEBHOOK_PENDING_MAX:
        return f"has {len(pending)} deliveries that wait"
    if webhook.pending_bytes != sum(one.size() for one in pending.values()):
        return f"does not count its {webhook.pending_bytes} bytes"
    ids = [one.id for one in pending.values()]
    if len(ids) != len(webhook.ids) or set(ids) != webhook.ids:
        return f"has deliveries of the events {ids}, knows {sorted(webhook.ids)}"
    if len(webhook.tries) > limits.WEBHOOK_TRIES_KEPT:
        return f"keeps {len(webhook.tries)} tries"
    if min(webhook.delivered, webhook.failed, webhook.dropped, webhook.missed) < 0:
        return "has counted below zero"
    if webhook.disabled_reason and not webhook.settings.disabled:
        return "is not disabled, and says why it is"
    return ""


def _due(webhook: Webhook) -> str:
    """A delivery that is not armed is being sent."""
    if not webhook.armed.keys() <= webhook.pending.keys():
        return f"will send {[*webhook.armed]}, of which not all wait"
    first_ms = min(webhook.armed.values(), default=None)
    if webhook.due_ms() != first_ms:
        return f"is looked at at {webhook.due_ms()}, its first delivery is due at {first_ms}"
    return ""


def webhooks_get_events(shard: Shard) -> str:
    """G27: events are made for webhooks where anything is to be told."""
    if shard.load.tells_webhooks:
        return ""
    if shard.webhooks.deliveries or any(
        one.settings.url for one in shard.webhooks.by_name.values()
    ):
        return "there are webhooks, and no events for them"
    items: Iterable[Item] = chain(shard.jobs.values(), shard.lots.lots.values())
    for item in items:
        if item.options.rules.webhook:
            return "a job has a webhook, and there are no events for it"
    return ""


WEBHOOKS: list[Callable[[Shard], str]] = [webhooks_add_up, webhooks_get_events]
