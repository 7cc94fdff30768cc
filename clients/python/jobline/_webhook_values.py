"""Webhooks, as the client returns them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Self

from jobline._enums import EventKind
from jobline._reading import read
from jobline.v1 import webhook_service_pb2


class WebhookOutcome(IntEnum):
    """What became of a try to deliver an event."""

    UNSPECIFIED = 0
    DELIVERED = 1
    RETRYING = 2
    FAILED = 3
    GONE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """What a webhook is for: events are sent to `url`, or calls push to `incoming_queue`.

    - `events`: the kinds of events; none: all ends of jobs.
    - `queue`: a pattern of queues, such as "mail-*"; `names`, `tags`: of jobs; empty: any.
    - `disabled`: nothing is sent or accepted.
    """

    url: str
    incoming_queue: str
    events: tuple[EventKind, ...]
    queue: str
    names: tuple[str, ...]
    tags: tuple[str, ...]
    disabled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A webhook, without its secret.

    - `name`, `settings`; `disabled_reason`: why its receiver disabled it.
    - `pending`: deliveries that wait; `delivered`, `failed`, `dropped`: those that are over;
      `missed`: how many times events were gone before they were read.
    - `previous_secret_until`: until when the secret before signs, too.
    - `created_at`; `changed_at`: when its settings or secret changed.
    """

    name: str
    settings: WebhookSettings
    disabled_reason: str
    pending: int
    delivered: int
    failed: int
    dropped: int
    missed: int
    previous_secret_until: datetime | None
    created_at: datetime | None
    changed_at: datetime | None

    @classmethod
    def from_message(cls, message: webhook_service_pb2.Webhook) -> Self:
        """Returns the value of the protocol's message."""
        return read(cls, message)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookWithSecret:
    """A webhook with its new secret, which is not shown again."""

    webhook: Webhook
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookDelivery:
    """A try to deliver an event.

    - `id`: the header `webhook-id`, the same in all tries; `type`: such as "job.completed".
    - `at`, `took`: when, and how long; `attempt`: from 1.
    - `status`: of the answer, 0 without; `outcome`; `error`: why it did not arrive.
    - `next_at`: when it is tried again.
    """

    id: str
    type: str
    at: datetime | None
    took: timedelta | None
    attempt: int
    status: int
    outcome: WebhookOutcome
    error: str
    next_at: datetime | None

    @classmethod
    def from_message(cls, message: webhook_service_pb2.WebhookDelivery) -> Self:
        """Returns the value of the protocol's message."""
        return read(cls, message)
