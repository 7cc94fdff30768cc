"""The webhooks of a shard, which keeps all of the server: by name, and by incoming queue."""

from __future__ import annotations

from jobline_server.engine.webhook import Delivery, Webhook


class Webhooks:
    """All webhooks, and the deliveries that wait."""

    __slots__ = ("by_incoming", "by_name", "deliveries")

    def __init__(self) -> None:
        self.by_name: dict[str, Webhook] = {}
        self.by_incoming: dict[str, Webhook] = {}
        self.deliveries: dict[int, tuple[Webhook, Delivery]] = {}
        """By number, with the webhook of each."""

    def __len__(self) -> int:
        return len(self.by_name)

    def find(self, name: str) -> Webhook | None:
        """Returns the webhook with this name; None without."""
        return self.by_name.get(name)

    def find_incoming(self, queue: str) -> Webhook | None:
        """Returns the webhook that pushes to a queue; None without."""
        return self.by_incoming.get(queue)

    def put(self, webhook: Webhook) -> None:
        """Adds a webhook, without deliveries."""
        self.by_name[webhook.name] = webhook
        if webhook.settings.incoming_queue:
            self.by_incoming[webhook.settings.incoming_queue] = webhook

    def drop(self, webhook: Webhook) -> list[int]:
        """Removes a webhook with its deliveries; returns their numbers."""
        del self.by_name[webhook.name]
        if webhook.settings.incoming_queue:
            del self.by_incoming[webhook.settings.incoming_queue]
        numbers = list(webhook.pending)
        for number in numbers:
            self.drop_delivery(number)
        return numbers

    def put_delivery(self, webhook: Webhook, delivery: Delivery) -> None:
        """Adds a delivery that waits, or changes one."""
        webhook.put(delivery)
        self.deliveries[delivery.number] = webhook, delivery

    def drop_delivery(self, number: int) -> bool:
        """Removes a delivery; returns whether it was there."""
        found = self.deliveries.pop(number, None)
        return found is not None and found[0].drop(number)

    def told(self) -> list[int]:
        """Returns the last row of each shard's journal whose events all were told of, as facts say;
        empty if none says so.
        """
        known = [webhook.told for webhook in self.by_name.values() if webhook.told]
        return [max(offsets) for offsets in zip(*known, strict=True)]

    def pending_bytes(self) -> int:
        """Returns about how many bytes of deliveries wait."""
        return sum(webhook.pending_bytes for webhook in self.by_name.values())
