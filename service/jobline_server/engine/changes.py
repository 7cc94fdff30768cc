"""Changes: the items that the next checkpoint must write and delete, per durable kind.

A row per job is expensive to write and to load. So a checkpoint writes single jobs that have not
changed since their push as *bundles*: neighbours in one item. A job that changes or ends leaves its
bundle for good, and the next checkpoint writes the bundle again without it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from jobline_server.engine.split import SplitSet
from jobline_server.engine.tables import IdSet, IdTable

S = TypeVar("S", bound=Collection[Any])


class Bundle:
    """Single jobs that share one item of a checkpoint, whose key is `first_id`: the `jobs` jobs
    with ids below `end_id` whose `stored` is this bundle.
    """

    __slots__ = ("end_id", "first_id", "jobs")

    def __init__(self, first_id: int, end_id: int, jobs: int) -> None:
        self.first_id = first_id
        self.end_id = end_id
        self.jobs = jobs


class KindChanges(Generic[S]):
    """The changes of one kind: `to_write` holds the ids of new and changed items, `to_delete` the
    keys of removed items that a checkpoint holds. An item that was added and removed between two
    checkpoints is in neither.
    """

    __slots__ = ("to_delete", "to_write")

    def __init__(self, to_write: S) -> None:
        self.to_write = to_write
        self.to_delete: list[int] = []


@dataclass(slots=True)
class Changes:
    """The changes since the last checkpoint, by kind."""

    queues: KindChanges[set[str]] = field(default_factory=lambda: KindChanges(set()))
    limiters: KindChanges[set[str]] = field(default_factory=lambda: KindChanges(set()))
    schedules: KindChanges[set[str]] = field(default_factory=lambda: KindChanges(set()))
    webhooks: KindChanges[set[str]] = field(default_factory=lambda: KindChanges(set()))
    webhook_deliveries: KindChanges[set[int]] = field(default_factory=lambda: KindChanges(set()))
    lots: KindChanges[IdSet] = field(default_factory=lambda: KindChanges(IdSet()))
    lot_payloads: KindChanges[IdSet] = field(default_factory=lambda: KindChanges(IdSet()))
    jobs: KindChanges[IdSet] = field(default_factory=lambda: KindChanges(IdSet()))
    producers: KindChanges[SplitSet] = field(default_factory=lambda: KindChanges(SplitSet()))
    messages: KindChanges[IdSet] = field(default_factory=lambda: KindChanges(IdSet()))
    batches: KindChanges[set[int]] = field(default_factory=lambda: KindChanges(set()))
    inboxes: KindChanges[set[int]] = field(default_factory=lambda: KindChanges(set()))
    groups: KindChanges[IdSet] = field(default_factory=lambda: KindChanges(IdSet()))
    bundles: KindChanges[IdSet] = field(default_factory=lambda: KindChanges(IdSet()))
    throttles: KindChanges[IdTable[bytes]] = field(default_factory=lambda: KindChanges(IdTable()))
    """By the ids under which they are written, with the hashes of their keys."""
    awaited: KindChanges[IdSet] = field(default_factory=lambda: KindChanges(IdSet()))
