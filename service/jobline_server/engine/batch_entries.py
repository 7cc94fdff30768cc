"""Facts of batches. `entries` has the list of all facts."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine.batches import BatchCall, BatchCount, BatchSpec


@dataclass(slots=True)
class BatchCreated:
    """A batch was created, open and without members."""

    at_ms: int
    id: int
    spec: BatchSpec


@dataclass(slots=True)
class BatchClosed:
    """A batch was closed: it is complete when all members have ended."""

    at_ms: int
    id: int


@dataclass(slots=True)
class BatchesJoined:
    """Jobs that were pushed in another shard, in the same commit, became members of batches."""

    at_ms: int
    ids: list[int]
    counts: list[int]


@dataclass(slots=True)
class BatchesCounted:
    """Members of batches ended in another shard, or were put back there."""

    at_ms: int
    ids: list[int]
    counts: list[BatchCount]


@dataclass(slots=True)
class BatchCalled:
    """Callbacks of a batch were decided; those that exist are pushed by facts of the same commit.
    `name` is that of the batch, for watchers.
    """

    at_ms: int
    id: int
    calls: BatchCall
    name: str


@dataclass(slots=True)
class BatchCountsSent:
    """What became of members here was sent to the home shards of these batches."""

    at_ms: int
    ids: list[int]


@dataclass(slots=True)
class BatchCancelled:
    """A batch was cancelled, and closed if it was open: no job becomes a member any more."""

    at_ms: int
    id: int
    principal: str
    reason: str


@dataclass(slots=True)
class BatchesForgotten:
    """Batches were complete for long enough."""

    at_ms: int
    ids: list[int]


BatchFact = (
    BatchCreated
    | BatchClosed
    | BatchesJoined
    | BatchesCounted
    | BatchCalled
    | BatchCountsSent
    | BatchCancelled
    | BatchesForgotten
)
