"""Webhooks, and the deliveries that wait ↔ the items of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from jobline.v1 import store_pb2
from jobline_server.engine.shard import Shard
from jobline_server.engine.webhook import Delivery, Webhook
from jobline_server.storage.codec.webhooks import (
    delivery_of,
    fill_delivery,
    fill_secrets,
    fill_settings,
    fill_try,
    secrets_of,
    settings_of,
    try_of,
)
from jobline_server.storage.kinds.by_id import by_id
from jobline_server.storage.kinds.loading import Loading
from jobline_server.storage.kinds.table import DurableKind
from jobline_server.storage.store import ItemKind, ItemRow


def encode_webhook(webhook: Webhook) -> bytes:
    """Returns the blob of a webhook, without its deliveries."""
    message = store_pb2.StoredWebhook(
        name=webhook.name,
        number=webhook.number,
        disabled_reason=webhook.disabled_reason,
        delivered=webhook.delivered,
        failed=webhook.failed,
        dropped=webhook.dropped,
        missed=webhook.missed,
        created_ms=webhook.created_ms,
        changed_ms=webhook.changed_ms,
        told_offsets=webhook.told,
    )
    fill_settings(message, webhook.settings)
    fill_secrets(message, webhook.secrets)
    for one in webhook.tries:
        fill_try(message.tries.add(), one)
    return message.SerializeToString()


def decode_webhook(blob: bytes) -> Webhook:
    """Returns the webhook in a blob."""
    message = store_pb2.StoredWebhook.FromString(blob)
    webhook = Webhook(message.name, message.number, settings_of(message), secrets_of(message))
    webhook.disabled_reason = message.disabled_reason
    webhook.delivered = message.delivered
    webhook.failed = message.failed
    webhook.dropped = message.dropped
    webhook.missed = message.missed
    webhook.tries = tuple(map(try_of, message.tries))
    webhook.created_ms = message.created_ms
    webhook.changed_ms = message.changed_ms
    webhook.told = tuple(message.told_offsets)
    return webhook


def load_webhooks(loading: Loading, rows: Iterator[ItemRow]) -> None:
    """Loads a page of webhooks."""
    for row in rows:
        webhook = decode_webhook(row.blob)
        loading.shard.webhooks.put(webhook)
        loading.shard.use_ids(webhook.number, 1)
        if webhook.settings.url:
            loading.shard.load.tells_webhooks = True


def encode_delivery(webhook: Webhook, delivery: Delivery) -> bytes:
    """Returns the blob of a delivery."""
    message = store_pb2.StoredWebhookDelivery(webhook=webhook.name)
    fill_delivery(message, delivery)
    return message.SerializeToString()


def load_deliveries(loading: Loading, rows: Iterator[ItemRow]) -> None:
    """Loads a page of deliveries. Those of a webhook that was set apart are left out, and deleted
    by the next checkpoint: a later webhook of that name has another receiver.
    """
    webhooks = loading.shard.webhooks
    for row in rows:
        message = store_pb2.StoredWebhookDelivery.FromString(row.blob)
        webhook, delivery = webhooks.find(message.webhook), delivery_of(message)
        loading.shard.use_ids(delivery.number, 1)
        if webhook is not None:
            webhooks.put_delivery(webhook, delivery)
            loading.shard.load.tells_webhooks = True
        else:
            loading.shard.changes.webhook_deliveries.to_delete.append(row.key)


def _save(_shard: Shard, _name: str, webhook: Webhook) -> tuple[int, bytes]:
    return webhook.number, encode_webhook(webhook)


def _save_delivery(
    _shard: Shard, number: int, of_webhook: tuple[Webhook, Delivery]
) -> tuple[int, bytes]:
    return number, encode_delivery(*of_webhook)


WEBHOOKS = DurableKind(
    ItemKind.WEBHOOK,
    load=load_webhooks,
    slices=by_id(
        ItemKind.WEBHOOK,
        owner=lambda shard: shard.webhooks.by_name,
        changes=lambda shard: shard.changes.webhooks,
        save=_save,
    ),
)
WEBHOOK_DELIVERIES = DurableKind(
    ItemKind.WEBHOOK_DELIVERY,
    load=load_deliveries,
    slices=by_id(
        ItemKind.WEBHOOK_DELIVERY,
        owner=lambda shard: shard.webhooks.deliveries,
        changes=lambda shard: shard.changes.webhook_deliveries,
        save=_save_delivery,
    ),
)
