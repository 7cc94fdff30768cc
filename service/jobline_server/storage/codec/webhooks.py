"""Facts of webhooks, between value and message."""

from __future__ import annotations

from jobline.v1 import entry_pb2, store_pb2
from jobline_server.engine.webhook import (
    Delivery,
    Secrets,
    Try,
    TryOutcome,
    WebhookSettings,
)
from jobline_server.engine.webhook_entries import (
    WebhookChanged,
    WebhookDeleted,
    WebhookProgressed,
)
from jobline_server.storage.codec.table import FactRow, FactTable, whole


def fill_settings(message: store_pb2.StoredWebhook, settings: WebhookSettings) -> None:
    """Writes the settings of a webhook."""
    message.url = settings.url
    message.incoming_queue = settings.incoming_queue
    message.events.extend(settings.events)
    message.queue = settings.queue
    message.names.extend(settings.names)
    message.tags.extend(settings.tags)
    message.disabled = settings.disabled


def settings_of(message: store_pb2.StoredWebhook) -> WebhookSettings:
    """Returns the settings of a webhook."""
    return WebhookSettings(
        url=message.url,
        incoming_queue=message.incoming_queue,
        events=tuple(message.events),
        queue=message.queue,
        names=tuple(message.names),
        tags=tuple(message.tags),
        disabled=message.disabled,
    )


def fill_secrets(message: store_pb2.StoredWebhook, secrets: Secrets) -> None:
    """Writes the secrets of a webhook."""
    message.secret = secrets.current
    message.previous_secret = secrets.previous
    message.previous_until_ms = secrets.previous_until_ms


def secrets_of(message: store_pb2.StoredWebhook) -> Secrets:
    """Returns the secrets of a webhook."""
    return Secrets(message.secret, message.previous_secret, message.previous_until_ms)


def fill_delivery(message: store_pb2.StoredWebhookDelivery, delivery: Delivery) -> None:
    """Writes a delivery, without the name of its webhook."""
    message.number = delivery.number
    message.id = delivery.id
    message.type = delivery.type
    message.body = delivery.body
    message.due_ms = delivery.due_ms
    message.url = delivery.url
    message.tries = delivery.tries


def delivery_of(message: store_pb2.StoredWebhookDelivery) -> Delivery:
    """Returns a delivery."""
    return Delivery(
        number=message.number,
        id=message.id,
        type=message.type,
        body=message.body,
        due_ms=message.due_ms,
        url=message.url,
        tries=message.tries,
    )


def fill_try(message: store_pb2.StoredWebhookTry, one: Try) -> None:
    """Writes a try."""
    message.number = one.number
    message.id = one.id
    message.type = one.type
    message.at_ms = one.at_ms
    message.took_ms = one.took_ms
    message.attempt = one.attempt
    message.status = one.status
    message.outcome = one.outcome
    message.error = one.error
    message.next_ms = one.next_ms


def try_of(message: store_pb2.StoredWebhookTry) -> Try:
    """Returns a try."""
    return Try(
        number=message.number,
        id=message.id,
        type=message.type,
        at_ms=message.at_ms,
        took_ms=message.took_ms,
        attempt=message.attempt,
        status=message.status,
        outcome=TryOutcome(message.outcome),
        error=message.error,
        next_ms=message.next_ms,
    )


def fill_webhook_changed(entry: entry_pb2.Entry, fact: WebhookChanged) -> None:
    """Writes it into an entry."""
    message = entry.webhook_changed.webhook
    message.name = fact.name
    message.number = fact.number
    fill_settings(message, fact.settings)
    fill_secrets(message, fact.secrets)
    entry.webhook_changed.told_offsets.extend(fact.told)


def webhook_changed(at_ms: int, message: entry_pb2.WebhookChanged) -> WebhookChanged:
    """Reads it."""
    webhook = message.webhook
    return WebhookChanged(
        at_ms,
        webhook.name,
        webhook.number,
        settings_of(webhook),
        secrets_of(webhook),
        tuple(message.told_offsets),
    )


def fill_webhook_deleted(entry: entry_pb2.Entry, fact: WebhookDeleted) -> None:
    """Writes it into an entry."""
    entry.webhook_deleted.name = fact.name


def webhook_deleted(at_ms: int, message: entry_pb2.WebhookDeleted) -> WebhookDeleted:
    """Reads it."""
    return WebhookDeleted(at_ms, message.name)


def fill_webhook_progressed(entry: entry_pb2.Entry, fact: WebhookProgressed) -> None:
    """Writes it into an entry."""
    message = entry.webhook_progressed
    message.name = fact.name
    for delivery in fact.queued:
        fill_delivery(message.queued.add(), delivery)
    message.dropped.extend(fact.dropped)
    message.dropped_early = fact.dropped_early
    for one in fact.tries:
        fill_try(message.tries.add(), one)
    message.missed = fact.missed
    message.told_offsets.extend(fact.told)


def webhook_progressed(at_ms: int, message: entry_pb2.WebhookProgressed) -> WebhookProgressed:
    """Reads it."""
    return WebhookProgressed(
        at_ms,
        message.name,
        queued=list(map(delivery_of, message.queued)),
        dropped=list(message.dropped),
        dropped_early=message.dropped_early,
        tries=list(map(try_of, message.tries)),
        missed=message.missed,
        told=tuple(message.told_offsets),
    )


FACTS: FactTable = {
    WebhookChanged: FactRow("webhook_changed", fill_webhook_changed, webhook_changed, whole),
    WebhookDeleted: FactRow("webhook_deleted", fill_webhook_deleted, webhook_deleted, whole),
    WebhookProgressed: FactRow(
        "webhook_progressed", fill_webhook_progressed, webhook_progressed, whole
    ),
}
