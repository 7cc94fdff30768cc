"""Webhooks: creates, changes and deletes them; takes deliveries, and the results of tries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.values import Now
from jobline_server.engine.view import ShardView
from jobline_server.engine.webhook import (
    JOBS_WEBHOOK,
    Delivery,
    Secrets,
    Try,
    Webhook,
    WebhookSettings,
)
from jobline_server.engine.webhook_entries import (
    WebhookChanged,
    WebhookDeleted,
    WebhookProgressed,
)


def existing_webhook(shard: ShardView, name: str, field: str = "webhook") -> Webhook:
    """Returns the webhook with this name; raises `Refused` with WEBHOOK_NOT_FOUND."""
    webhook = shard.webhooks.find(name)
    if webhook is None:
        message = f"there is no webhook {name}"
        raise Refused(RefusalKind.WEBHOOK_NOT_FOUND, message, field=field)
    return webhook


def decide_create_webhook(
    shard: ShardView,
    now: Now,
    name: str,
    settings: WebhookSettings,
    secret: bytes,
    *,
    told: tuple[int, ...] = (),
) -> Webhook:
    """Creates a webhook. Raises `Refused` with WEBHOOK_EXISTS or WEBHOOKS_FULL."""
    if shard.webhooks.find(name) is not None:
        raise Refused(RefusalKind.WEBHOOK_EXISTS, f"there is a webhook {name}", field="webhook")
    other = shard.webhooks.find_incoming(settings.incoming_queue)
    if other is not None:
        message = f"queue {settings.incoming_queue} has the webhook {other.name}"
        raise Refused(RefusalKind.WEBHOOK_EXISTS, message, field="settings.incoming_queue")
    # The one of the URLs of jobs is nobody's: it has a place of its own.
    count = len(shard.webhooks.by_name.keys() - {JOBS_WEBHOOK})
    if name != JOBS_WEBHOOK and count >= limits.WEBHOOKS_MAX:
        message = f"there are {limits.WEBHOOKS_MAX} webhooks, the most there may be"
        raise Refused(RefusalKind.WEBHOOKS_FULL, message, field="webhook")
    number = shard.next_id()
    shard.emit(WebhookChanged(now.wall_ms, name, number, settings, Secrets(secret), told))
    return existing_webhook(shard, name)


def decide_update_webhook(
    shard: ShardView, now: Now, name: str, settings: WebhookSettings
) -> Webhook:
    """Changes the settings of a webhook, which stays outgoing, or of its queue."""
    webhook = existing_webhook(shard, name)
    before = webhook.settings
    if bool(before.url) != bool(settings.url) or before.incoming_queue != settings.incoming_queue:
        message = "an outgoing webhook stays outgoing, and an incoming one keeps its queue"
        field = "settings.incoming_queue" if before.incoming_queue else "settings.url"
        raise Refused(RefusalKind.INVALID_FIELD, message, field=field)
    if before != settings:
        fact = WebhookChanged(now.wall_ms, name, webhook.number, settings, webhook.secrets)
        shard.emit(fact)
    return webhook


def decide_rotate_secret(shard: ShardView, now: Now, name: str, secret: bytes) -> Webhook:
    """Gives a webhook a new secret; the one before is used beside it for a day."""
    webhook = existing_webhook(shard, name)
    if secret != webhook.secrets.current:
        until_ms = now.wall_ms + limits.WEBHOOK_SECRET_OVERLAP_MS
        secrets = Secrets(secret, webhook.secrets.current, until_ms)
        fact = WebhookChanged(now.wall_ms, name, webhook.number, webhook.settings, secrets)
        shard.emit(fact)
    return webhook


def decide_delete_webhook(shard: ShardView, now: Now, name: str) -> None:
    """Deletes a webhook, with the deliveries that wait."""
    existing_webhook(shard, name)
    shard.emit(WebhookDeleted(now.wall_ms, name))


def decide_queue_deliveries(
    shard: ShardView,
    now: Now,
    name: str,
    deliveries: Sequence[Delivery],
    *,
    dropped_early: int = 0,
    missed: bool = False,
    told: tuple[int, ...] = (),
) -> int:
    """Has deliveries wait, except those that do already; they get their numbers here. Where more
    would wait than may, drops the oldest. Returns how many wait now that did not.
    """
    webhook = existing_webhook(shard, name)
    first = shard.next_id()
    queued: list[Delivery] = []
    for delivery in deliveries:
        if delivery.id not in webhook.ids:
            queued.append(replace(delivery, number=first + len(queued)))
    new_bytes = sum(delivery.size() for delivery in queued)
    count = len(webhook.pending) + len(queued) - limits.WEBHOOK_PENDING_MAX
    excess = shard.webhooks.pending_bytes() + new_bytes - limits.WEBHOOK_PENDING_BYTES_MAX
    dropped: list[int] = []
    for number, delivery in webhook.pending.items():
        if count <= len(dropped) and excess <= 0:
            break
        dropped.append(number)
        excess -= delivery.size()
    fact = WebhookProgressed(
        now.wall_ms, name, queued, dropped, dropped_early, missed=missed, told=told
    )
    shard.emit(fact)
    return len(queued)


def decide_note_tries(shard: ShardView, now: Now, name: str, tries: Sequence[Try]) -> None:
    """Notes the results of tries; does nothing if the webhook was deleted meanwhile."""
    if shard.webhooks.find(name) is not None:
        shard.emit(WebhookProgressed(now.wall_ms, name, tries=list(tries)))
