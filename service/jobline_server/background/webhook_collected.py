"""Deliveries that are collected for one commit."""

from __future__ import annotations

from collections import Counter

from jobline_server.engine.webhook import Delivery
from jobline_server.runtime.calls.webhooks import NewDeliveries


class Collected:
    """Deliveries by webhook, and how many more are left out."""

    def __init__(self) -> None:
        self.count = 0
        """How many there are."""
        self._deliveries: dict[str, list[Delivery]] = {}
        self._dropped: Counter[str] = Counter()

    def add(self, webhook: str, delivery: Delivery) -> None:
        """Adds a delivery of a webhook."""
        self._deliveries.setdefault(webhook, []).append(delivery)
        self.count += 1

    def drop(self, webhook: str, count: int) -> None:
        """Counts deliveries of a webhook that are left out."""
        self._deliveries.setdefault(webhook, [])
        self._dropped[webhook] += count

    def take(self) -> dict[str, NewDeliveries]:
        """Returns all, and begins anew."""
        taken = {
            name: NewDeliveries(deliveries, self._dropped[name])
            for name, deliveries in self._deliveries.items()
        }
        self.count, self._deliveries, self._dropped = 0, {}, Counter()
        return taken
