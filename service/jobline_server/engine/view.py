"""The view of a shard that verbs get: they read, emit facts and set clocks, but cannot write."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from jobline_server.engine.age import Age
from jobline_server.engine.batch_table import BatchTable
from jobline_server.engine.clocks import LeaseClocks
from jobline_server.engine.closed_groups import ClosedGroups
from jobline_server.engine.delayed import Delayed, Entry
from jobline_server.engine.dependencies import Dependencies
from jobline_server.engine.entries import Fact
from jobline_server.engine.expiring import Expiring
from jobline_server.engine.gate_timers import GateTimers
from jobline_server.engine.group_rates import GroupRates
from jobline_server.engine.job import Job
from jobline_server.engine.keys import KeyRecord
from jobline_server.engine.limiters import Limiters, LimiterSettings
from jobline_server.engine.load import Load
from jobline_server.engine.lookups import Jobs, Lots
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.producers import Producer
from jobline_server.engine.queue import Queue
from jobline_server.engine.schedules import Schedules
from jobline_server.engine.shard_messages import SentMessage
from jobline_server.engine.sticky import StickyJobs
from jobline_server.engine.unique import Throttle
from jobline_server.engine.values import JobState
from jobline_server.engine.webhooks import Webhooks


class Keys(Protocol):
    """Keys and request ids, by hash."""

    @property
    def volatile(self) -> Container[bytes]:
        """The keys of volatile jobs."""

    def find(self, key_hash: bytes, aged_ms: int) -> KeyRecord | None:
        """Returns the record of a key; None if it is unknown or expired."""

    def was_forgotten(self, key_hash: bytes, first_id: int) -> bool:
        """Returns whether a key that named this job was forgotten by hand and is still free."""


class Throttles(Protocol):
    """Throttled unique keys, by hash."""

    def find(self, key_hash: bytes, aged_ms: int) -> Throttle | None:
        """Returns the throttle of a key; None without, or if it has expired."""


class Unique(Protocol):
    """Unique keys, by hash."""

    @property
    def throttled(self) -> Throttles:
        """Keys that are held until a time."""

    def holder(self, key_hash: bytes) -> int | None:
        """Returns the id of the job that holds a key, or held it last and is unfinished."""

    def behind(self, key_hash: bytes) -> int | None:
        """Returns the id of the job that is parked behind the holder of a key."""


class Producers(Protocol):
    """Producers by id, with the calls that may be repeated."""

    def find(self, producer: bytes, aged_ms: int) -> Producer | None:
        """Returns a producer; None if it is unknown or expired."""


class Messages(Protocol):
    """Outboxes to other shards, and the numbers up to which messages of others were applied."""

    @property
    def received(self) -> Mapping[int, int]:
        """The number of the last message that was applied, by sending shard."""

    def outbox(self, to_shard: int) -> Iterable[SentMessage]:
        """Returns the messages that wait for a shard, in order."""

    def next_number(self, to_shard: int, epoch: int) -> int:
        """Returns the number of the next message to a shard."""


class ShardView(Protocol):
    """A shard, read-only except for `emit`, the timers (`clocks`, `delayed`, `gates`), and the
    bookkeeping of `forget_keys` and `note_use`.
    """

    @property
    def number(self) -> int:
        """The number of the shard."""

    @property
    def epoch(self) -> int:
        """A number that rises with each opening of the shard."""

    @property
    def queues(self) -> Mapping[str, Queue]:
        """Queues by name."""

    @property
    def jobs(self) -> Jobs[Job]:
        """Single jobs."""

    @property
    def lots(self) -> Lots:
        """All other live jobs."""

    @property
    def keys(self) -> Keys:
        """The records of job keys."""

    @property
    def requests(self) -> Keys:
        """The records of request ids."""

    @property
    def producers(self) -> Producers:
        """Producers whose calls may be repeated."""

    @property
    def volatile_producers(self) -> Producers:
        """Producers of volatile jobs."""

    @property
    def messages(self) -> Messages:
        """Messages between shards."""

    @property
    def unique(self) -> Unique:
        """Unique keys."""

    @property
    def age(self) -> Age:
        """The clock of the windows of keys."""

    @property
    def load(self) -> Load:
        """Totals of all shards, and their limits."""

    @property
    def committed(self) -> int:
        """The offset up to which the journal is on disk."""

    @property
    def clocks(self) -> LeaseClocks:
        """Holders, and the ends of their leases."""

    @property
    def delayed(self) -> Delayed:
        """Delayed jobs and lots, by time."""

    @property
    def batches(self) -> BatchTable:
        """The batches of this shard, and its members of any batch."""

    @property
    def dependencies(self) -> Dependencies:
        """The jobs that others wait for."""

    @property
    def gates(self) -> GateTimers:
        """Queues with gates that open by themselves, by time."""

    @property
    def sticky(self) -> StickyJobs:
        """Jobs that are reserved for sessions, and what sessions had last."""

    @property
    def expiring(self) -> Expiring:
        """Jobs and lots with a TTL, by the time at which it ends."""

    @property
    def group_rates(self) -> GroupRates:
        """The tokens of groups."""

    @property
    def closed_groups(self) -> ClosedGroups:
        """Groups that let nothing out, by the time at which they go on."""

    @property
    def limiters(self) -> Limiters:
        """The limiters of the server."""

    @property
    def own_limiters(self) -> Mapping[str, LimiterSettings]:
        """The limiters whose settings this shard keeps."""

    @property
    def schedules(self) -> Schedules:
        """Schedules, and when they are due."""

    @property
    def webhooks(self) -> Webhooks:
        """Webhooks; those of the server are in one shard."""

    def emit(self, fact: Fact, *, volatile: bool = False) -> None:
        """Applies a fact and records it."""

    def find_lease(self, job_id: int) -> tuple[Job | RunLease | None, bool]:
        """Returns the job or run that holds this id as ACTIVE, and whether the id is live."""

    def state_of(self, job_id: int) -> JobState | None:
        """Returns the state of a live job."""

    def delayed_at(self, entries: Sequence[Entry]) -> Iterator[tuple[Job | None, Lot | None]]:
        """Yields the job and the lot that become READY at the time of each entry under its id."""

    def next_id(self) -> int:
        """Returns the id that the next job will have."""

    def first_delivery(self) -> int:
        """Returns the `delivery` of a job's first lease in this epoch."""

    def note_use(self, queue: Queue, wall_ms: int) -> None:
        """Records that a queue is in use."""

    def forget_keys(self, aged_ms: int, limit: int) -> bool:
        """Sweeps expired keys and calls; returns whether more are left."""
