"""Deliveries that are collected for one commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence

from jobline_server.background.webhook_messages import Filter
from jobline_server.engine.webhook import Delivery, Webhook
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

    def take(self, *, but: Container[str] = ()) -> dict[str, NewDeliveries]:
        """Returns all but those of some webhooks, and begins anew."""
        taken = {
            name: NewDeliveries(deliveries, self._dropped[name])
            for name, deliveries in self._deliveries.items()
            if name not in but
        }
        self.count, self._deliveries, self._dropped = 0, {}, Counter()
        return taken


def gone(filters: Sequence[Filter], webhooks: Sequence[Webhook]) -> set[str]:
    """Returns the names of filters whose webhook is not there any more. One that has the name now
    may have another receiver.
    """
    here = {one.name: one.number for one in webhooks}
    return {one.name for one in filters if here.get(one.name) != one.number}


def first_due_ms(webhooks: Sequence[Webhook]) -> int | None:
    """Returns when the next delivery of any webhook is tried; None without."""
    times = [one.due_ms() for one in webhooks if not one.settings.disabled]
    return min((due_ms for due_ms in times if due_ms is not None), default=None)
