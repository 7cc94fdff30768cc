"""Operators' calls on webhooks, and what those who send to them need.

All webhooks are in the first shard, as they follow the events of all. Secrets are made outside,
where chance is.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from os import urandom
from typing import NamedTuple

from jobline_server.engine.decide.webhooks import (
    decide_create_webhook,
    decide_delete_webhook,
    decide_note_tries,
    decide_queue_deliveries,
    decide_rotate_secret,
    decide_update_webhook,
    existing_webhook,
)
from jobline_server.engine.webhook import (
    JOBS_WEBHOOK,
    Delivery,
    Secrets,
    Try,
    Webhook,
    WebhookSettings,
)
from jobline_server.runtime.calls.operations import Operations, Target
from jobline_server.runtime.core import Core
from jobline_server.runtime.slots import ShardSlot
from jobline_server.runtime.views import NO_AUDIT, Audit

HOME = 0
TEST_TYPE = "webhook.test"
SECRET_BYTES = 32


def _random() -> bytes:
    return urandom(SECRET_BYTES)


class NewDeliveries(NamedTuple):
    """Deliveries of one webhook that begin to wait; `dropped_early` more were left out."""

    deliveries: list[Delivery]
    dropped_early: int = 0


@dataclass(frozen=True, slots=True)
class WebhookView:
    """A webhook, as it is shown."""

    name: str
    settings: WebhookSettings
    disabled_reason: str
    pending: int
    delivered: int
    failed: int
    dropped: int
    missed: int
    previous_until_ms: int
    created_ms: int
    changed_ms: int


class WebhookCalls:
    """Reads and changes webhooks. `new_secret` returns random bytes."""

    def __init__(
        self, core: Core, operations: Operations, new_secret: Callable[[], bytes] = _random
    ) -> None:
        self._core = core
        self._operations = operations
        self.new_secret = new_secret

    @property
    def _home(self) -> ShardSlot:
        return self._core.slots[HOME]

    @property
    def is_here(self) -> bool:
        """Returns whether webhooks are served here: their shard was not lost."""
        return HOME in self._core.slots

    def get_webhook(self, name: str) -> WebhookView:
        """Returns one webhook. Raises `Refused` with WEBHOOK_NOT_FOUND."""
        return self._view(existing_webhook(self._home.shard, name))

    def list_webhooks(
        self, *, page_size: int, page_token: str, prefix: str
    ) -> tuple[list[WebhookView], str]:
        """Returns a page of webhooks by name; the token is the last name of the page before."""
        by_name = self._home.shard.webhooks.by_name
        names = sorted(name for name in by_name if name > page_token and name.startswith(prefix))
        views = [self._view(by_name[name]) for name in names[:page_size]]
        return views, names[page_size - 1] if len(names) > page_size else ""

    def list_tries(self, name: str, *, page_size: int, skip: int) -> tuple[list[Try], int]:
        """Returns the last tries, the newest first, after the first `skip`; and where the next page
        begins, 0 for nowhere.
        """
        tries = existing_webhook(self._home.shard, name).tries[::-1]
        end = skip + page_size
        return list(tries[skip:end]), end if end < len(tries) else 0

    async def create_webhook(
        self, name: str, settings: WebhookSettings, secret: bytes, audit: Audit = NO_AUDIT
    ) -> WebhookView:
        """Creates a webhook. Raises `Refused` with WEBHOOK_EXISTS or WEBHOOKS_FULL."""
        home = self._home
        self._core.check_accepting(home, 1)
        # Events before this are none of its own. If others are told already, they are far enough.
        told = () if self._core.load.tells_webhooks else tuple(self._core.slots.offsets())
        decide_create_webhook(home.shard, self._core.now(), name, settings, secret, told=told)
        return await self._changed(home, name, audit)

    async def update_webhook(
        self,
        name: str,
        change: Callable[[WebhookSettings], WebhookSettings],
        audit: Audit = NO_AUDIT,
    ) -> WebhookView:
        """Changes a webhook; `change` returns its new settings."""
        home = self._home
        before = existing_webhook(home.shard, name).settings
        decide_update_webhook(home.shard, self._core.now(), name, change(before))
        return await self._changed(home, name, audit)

    async def rotate_secret(self, name: str, secret: bytes, audit: Audit = NO_AUDIT) -> WebhookView:
        """Gives a webhook a new secret."""
        home = self._home
        decide_rotate_secret(home.shard, self._core.now(), name, secret)
        return await self._changed(home, name, audit)

    async def delete_webhook(self, name: str, audit: Audit = NO_AUDIT) -> None:
        """Deletes a webhook, with the deliveries that wait."""
        home = self._home
        queue = existing_webhook(home.shard, name).settings.incoming_queue
        decide_delete_webhook(home.shard, self._core.now(), name)
        self._operations.record(home, audit, Target(queue))
        await self._commit(home)

    async def test_webhook(self, name: str, audit: Audit = NO_AUDIT) -> str:
        """Has a test event sent to a webhook; returns its `webhook-id`."""
        home, now = self._home, self._core.now()
        self._core.check_accepting(home, 1)
        delivery_id = f"msg_{name}_test_{audit.operation_id or home.shard.next_id()}"
        at = datetime.fromtimestamp(now.wall_ms / 1_000, UTC).isoformat(timespec="milliseconds")
        document = {"type": TEST_TYPE, "timestamp": at, "data": {"webhook": name}}
        body = json.dumps(document, separators=(",", ":")).encode()
        delivery = Delivery(0, delivery_id, TEST_TYPE, body, now.wall_ms)
        decide_queue_deliveries(home.shard, now, name, [delivery])
        self._operations.record(home, audit, Target())
        await self._commit(home)
        return delivery_id

    def incoming(self, queue: str) -> Secrets | None:
        """Returns the secrets of the webhook that may push to a queue; None without, or while it is
        disabled.
        """
        webhook = self._home.shard.webhooks.find_incoming(queue)
        return None if webhook is None or webhook.settings.disabled else webhook.secrets

    def outgoing(self) -> list[Webhook]:
        """Returns the webhooks that are told of events, to read from."""
        webhooks = self._home.shard.webhooks.by_name.values()
        return [one for one in webhooks if one.settings.url or one.name == JOBS_WEBHOOK]

    def told(self) -> list[int]:
        """Returns what facts say of the last row of each shard's journal that all were told of."""
        return self._home.shard.webhooks.told()

    async def queue_deliveries(
        self,
        new: dict[str, NewDeliveries],
        told: tuple[int, ...],
        *,
        missed: bool = False,
    ) -> int:
        """Has deliveries wait, by the name of their webhook, all in one commit; with `missed` every
        webhook gets to know. Returns how many wait now that did not.
        """
        home, now, queued = self._home, self._core.now(), 0
        if JOBS_WEBHOOK in new and home.shard.webhooks.find(JOBS_WEBHOOK) is None:
            secret = self.new_secret()
            decide_create_webhook(home.shard, now, JOBS_WEBHOOK, WebhookSettings(), secret)
        concerned = {one.name for one in self.outgoing()} if missed else new.keys()
        for name in sorted(concerned):
            deliveries, dropped_early = new.get(name, NewDeliveries([]))
            if home.shard.webhooks.find(name) is not None:
                queued += decide_queue_deliveries(
                    home.shard,
                    now,
                    name,
                    deliveries,
                    dropped_early=dropped_early,
                    missed=missed,
                    told=told,
                )
        await self._commit(home)
        return queued

    async def note_tries(self, tries: dict[str, list[Try]]) -> None:
        """Notes the results of tries, by the name of their webhook."""
        home, now = self._home, self._core.now()
        for name, of_webhook in tries.items():
            decide_note_tries(home.shard, now, name, of_webhook)
        await self._commit(home)

    async def drop_queue(self, queue: str) -> None:
        """Deletes the webhooks that are for a queue alone, which was deleted."""
        if not self.is_here:
            return
        home = self._home
        of_queue = [
            one.name
            for one in home.shard.webhooks.by_name.values()
            if queue in {one.settings.queue, one.settings.incoming_queue}
        ]
        for name in of_queue:
            decide_delete_webhook(home.shard, self._core.now(), name)
        if of_queue:
            await self._commit(home)

    async def _changed(self, home: ShardSlot, name: str, audit: Audit) -> WebhookView:
        webhook = existing_webhook(home.shard, name)
        self._operations.record(home, audit, Target(webhook.settings.incoming_queue))
        await self._commit(home)
        return self._view(webhook)

    async def _commit(self, home: ShardSlot) -> None:
        self._core.after_decision(home)
        await self._core.commits.wait(home)

    def _view(self, webhook: Webhook) -> WebhookView:
        secrets = webhook.secrets
        has_previous = len(secrets.valid(self._core.wall_ms())) > 1
        return WebhookView(
            webhook.name,
            webhook.settings,
            webhook.disabled_reason,
            len(webhook.pending),
            webhook.delivered,
            webhook.failed,
            webhook.dropped,
            webhook.missed,
            secrets.previous_until_ms if has_previous else 0,
            webhook.created_ms,
            webhook.changed_ms,
        )
