"""Facts of webhooks. `entries` has the list of all facts."""

from __future__ import annotations

from dataclasses import dataclass, field

from jobline_server.engine.webhook import Delivery, Secrets, Try, WebhookSettings


@dataclass(slots=True)
class WebhookChanged:
    """A webhook has these settings and secrets from now on; it is new if none had its name. `told`,
    of the first one: the row of each shard's journal after which events concern it.
    """

    at_ms: int
    name: str
    number: int
    settings: WebhookSettings
    secrets: Secrets
    told: tuple[int, ...] = ()


@dataclass(slots=True)
class WebhookDeleted:
    """A webhook was deleted, with the deliveries that waited."""

    at_ms: int
    name: str


@dataclass(slots=True)
class WebhookProgressed:
    """A webhook was told of events: deliveries wait from now on (`queued`), were dropped because
    too many waited (by number, or before they had one), or were tried. `missed`: events were gone
    before they were read. `told` is the last row of each shard's journal that all webhooks were
    told of, if it is known.
    """

    at_ms: int
    name: str
    queued: list[Delivery] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    dropped_early: int = 0
    tries: list[Try] = field(default_factory=list)
    missed: bool = False
    told: tuple[int, ...] = ()


WebhookFact = WebhookChanged | WebhookDeleted | WebhookProgressed
