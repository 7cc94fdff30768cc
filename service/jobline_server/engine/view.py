"""What verbs see of a shard: they read, emit facts, and move clocks. They cannot write."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Protocol, TypeVar

from jobline_server.engine.clocks import LeaseClocks
from jobline_server.engine.delayed import Delayed
from jobline_server.engine.entries import Fact
from jobline_server.engine.gate_timers import GateTimers
from jobline_server.engine.job import Job
from jobline_server.engine.keys import KeyRecord
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.producers import Producer
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard_messages import SentMessage
from jobline_server.engine.state import Age, Load
from jobline_server.engine.values import JobState

V_co = TypeVar("V_co", covariant=True)


class Jobs(Protocol[V_co]):
    """Single jobs by id."""

    def __contains__(self, job_id: object) -> bool: ...

    def find(self, item_id: int) -> V_co | None:
        """Returns the job with this id, if there is one."""

    def part(self, item_id: int) -> Mapping[int, V_co]:
        """Returns the neighbourhood of an id, to look up those next to it."""


class Lots(Protocol):
    """Lots by the ids of their members."""

    def find(self, job_id: int) -> Lot | None:
        """Returns the lot whose ids this one is among, if there is one."""


class Keys(Protocol):
    """Keys and request ids, by hash."""

    @property
    def volatile(self) -> Container[bytes]:
        """Those that are never written."""

    def find(self, key_hash: bytes, aged_ms: int) -> KeyRecord | None:
        """Returns what a key stands for, while its window lasts."""


class Producers(Protocol):
    """Producers by id, with the calls that may come again."""

    def find(self, producer: bytes, aged_ms: int) -> Producer | None:
        """Returns a producer that is known, while its window lasts."""


class Messages(Protocol):
    """Messages to other shards that wait, and which ones of others were applied."""

    @property
    def received(self) -> Mapping[int, int]:
        """The number of the last message that was applied, by source."""

    def outbox(self, to_shard: int) -> Iterable[SentMessage]:
        """Returns what waits for a shard, in order."""

    def next_number(self, to_shard: int, epoch: int) -> int:
        """Returns the number of the next message to a shard."""


class ShardView(Protocol):
    """A shard, read-only but for three doors: `emit`, `clocks` with `delayed` and `gates`, and what
    nobody can find any more (`forget_keys`, `note_use`).
    """

    @property
    def number(self) -> int:
        """Its number."""

    @property
    def epoch(self) -> int:
        """The number of this opening of the shard; it rises with each."""

    @property
    def queues(self) -> Mapping[str, Queue]:
        """Queues by name."""

    @property
    def jobs(self) -> Jobs[Job]:
        """Jobs that are objects of their own."""

    @property
    def lots(self) -> Lots:
        """All other live jobs."""

    @property
    def keys(self) -> Keys:
        """What job keys stand for."""

    @property
    def requests(self) -> Keys:
        """What request ids stand for."""

    @property
    def producers(self) -> Producers:
        """Producers whose calls may come again."""

    @property
    def volatile_producers(self) -> Producers:
        """Those whose jobs are never written."""

    @property
    def messages(self) -> Messages:
        """Messages between shards."""

    @property
    def age(self) -> Age:
        """The time that windows of keys run by."""

    @property
    def load(self) -> Load:
        """What all shards hold together, and may."""

    @property
    def committed(self) -> int:
        """The offset up to which the journal is on disk."""

    @property
    def clocks(self) -> LeaseClocks:
        """Holders, and the time of their leases."""

    @property
    def delayed(self) -> Delayed:
        """What becomes ready at its time."""

    @property
    def gates(self) -> GateTimers:
        """Queues whose gates open by themselves."""

    def emit(self, fact: Fact, *, volatile: bool = False) -> None:
        """Applies a fact and records it."""

    def find_lease(self, job_id: int) -> tuple[Job | RunLease | None, bool]:
        """Returns the job or run that holds this id as ACTIVE, and whether the id is live."""

    def state_of(self, job_id: int) -> JobState | None:
        """Returns the state of a live job."""

    def delayed_at(self, run_at_ms: int, first_id: int) -> tuple[Job | None, Lot | None]:
        """Returns what becomes ready at this time under this id."""

    def next_id(self) -> int:
        """Returns the id that the next job will have."""

    def first_delivery(self) -> int:
        """Returns the counter of a job's first lease in this epoch."""

    def note_use(self, queue: Queue, wall_ms: int) -> None:
        """Notes that a queue is in use."""

    def forget_keys(self, aged_ms: int, limit: int) -> bool:
        """Sweeps keys and calls whose window has ended; returns whether more are left."""
