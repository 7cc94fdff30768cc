"""The engine alone: no wire, no disk, no loop. `python -m benchmarks.engine` prints its figures.

A rate is that of the median batch of a thousand jobs, so that a neighbour on the machine does not
show. The garbage collector runs as rarely as in the server. What is not measured is made outside
the clock.
"""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import TypeVar

from jobline_server import memory
from jobline_server.engine.commands import FailItem, Leased, Push
from jobline_server.engine.decide.ack import decide_ack
from jobline_server.engine.decide.lease import decide_lease
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.settle import decide_fail
from jobline_server.engine.holder import Holder
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.load import Load
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import DEFAULT_OPTIONS, JobError, JobOptions, Now

BATCH = 1_000
BATCHES = 100
WINDOW = 8 * BATCH
NOW = Now(1_700_000_000_000, 1_000)
PRIORITIES = [JobOptions(priority=priority) for priority in range(3)]
NAMES = [JobOptions(name=name) for name in ("mail", "thumbnail", "report")]
MANY_NAMES = [JobOptions(name=f"name-{number}") for number in range(10_000)]
ERROR = JobError("TimeoutError", "the printer did not answer")

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured, and what is wanted: at least so many jobs a second, at most so many bytes
    a job, or at most so many times what something else takes."""

    work: str
    measured: float
    wanted: float
    unit: str

    def is_met(self) -> bool:
        """Whether the wish is fulfilled."""
        if self.unit in {"bytes", "times"}:
            return self.measured <= self.wanted
        return self.measured >= self.wanted


class World:
    """A shard, a consumer, and what each batch took."""

    def __init__(self) -> None:
        self.shard = Shard(1, epoch=50_000_000, load=Load())
        self.holder = Holder("w1", "s1")
        self._seconds: dict[str, list[float]] = {}

    def timed(self, work: str, call: Callable[[], Result]) -> Result:
        """Calls, and notes how long it took."""
        started = perf_counter()
        result = call()
        self._seconds.setdefault(work, []).append(perf_counter() - started)
        return result

    def rate(self, *work: str) -> float:
        """Jobs a second of the median batch; of several kinds of work, one after the other."""
        return BATCH / sum(median(self._seconds[kind]) for kind in work)

    def commit(self) -> None:
        """What happened is on disk, and the outside was told."""
        self.shard.take_entries()
        self.shard.take_applied()
        self.shard.committed = self.shard.next_offset - 1

    def push_lot(self) -> None:
        payloads = payloads_of(BATCH)
        command = Push("q", DEFAULT_OPTIONS, payloads=Payloads.of(payloads))
        self.timed("push", lambda: decide_push(self.shard, NOW, command))
        self.commit()

    def push_rows(self, options: list[JobOptions]) -> None:
        own = [options[index % len(options)] for index in range(BATCH)]
        command = Push("q", DEFAULT_OPTIONS, JobColumns(list(payloads_of(BATCH)), own))
        self.timed("push", lambda: decide_push(self.shard, NOW, command))
        self.commit()

    def pull(self, limit: int, names: frozenset[str] | None) -> None:
        """Leases a few jobs, and has their lanes as they are after the commit."""
        leased = self.timed("pull", lambda: self._lease(limit, names))
        assert leased.count() == limit, leased.count()
        self.commit()

    def seconds(self, work: str) -> float:
        """Of the median call."""
        return median(self._seconds[work])

    def lease(self) -> list[tuple[int, int]]:
        """Leases a batch; returns (id, delivery) of each."""
        leased = self.timed("lease", self._lease)
        self.commit()
        return [*leases_of(leased)]

    def _lease(self, limit: int = BATCH, names: frozenset[str] | None = None) -> Leased:
        return decide_lease(
            self.shard,
            NOW,
            self.shard.queues["q"],
            self.holder,
            max_jobs=limit,
            max_bytes=1 << 30,
            names=names,
            lease_ms=0,
        )

    def ack(self, leases: list[tuple[int, int]]) -> None:
        ids = [job_id for job_id, _ in leases]
        deliveries = [delivery for _, delivery in leases]
        refused = self.timed("ack", lambda: decide_ack(self.shard, NOW, ids, deliveries, {}))
        assert not refused, refused
        self.commit()

    def fail(self, leases: list[tuple[int, int]]) -> None:
        items = [FailItem(job_id, delivery, ERROR) for job_id, delivery in leases]
        self.timed("fail", lambda: decide_fail(self.shard, NOW, items))
        self.commit()


def payloads_of(count: int) -> list[bytes]:
    """Payloads of 100 bytes, each an object of its own."""
    return [b"%0100d" % index for index in range(count)]


def leases_of(leased: Leased) -> Iterator[tuple[int, int]]:
    """(id, delivery) of each job."""
    for job in leased.jobs:
        yield job.id, job.delivery
    for run in leased.runs:
        for index in range(len(run.payloads)):
            yield run.first_id + index, run.delivery


def lots() -> list[Figure]:
    """Plain jobs, a thousand a call, settled in order."""
    world = World()
    for _ in range(BATCHES):
        world.push_lot()
    for _ in range(BATCHES):
        world.ack(world.lease())
    return [
        Figure("plain jobs: push", world.rate("push"), 13e6, "jobs/s"),
        Figure("plain jobs: lease + ack", world.rate("lease", "ack"), 13e6, "jobs/s"),
    ]


def shuffled() -> list[Figure]:
    """Plain jobs, eight thousand held, settled a thousand at a time in no order."""
    world = World()
    for _ in range(BATCHES + WINDOW // BATCH):
        world.push_lot()
    order = random.Random(1)
    held: list[tuple[int, int]] = []
    for _ in range(BATCHES):
        while len(held) < WINDOW:
            held += world.lease()
        order.shuffle(held)
        world.ack(held[:BATCH])
        del held[:BATCH]
    return [Figure("plain jobs: ack in random order", world.rate("ack"), 900e3, "jobs/s")]


def rows(kind: str, options: list[JobOptions]) -> list[Figure]:
    """Jobs with options of their own, a thousand a call."""
    world = World()
    for _ in range(BATCHES):
        world.push_rows(options)
    for _ in range(BATCHES):
        world.ack(world.lease())
    return [
        Figure(f"{kind}: push", world.rate("push"), 900e3, "jobs/s"),
        Figure(f"{kind}: lease", world.rate("lease"), 1_000e3, "jobs/s"),
        Figure(f"{kind}: ack", world.rate("ack"), 1_500e3, "jobs/s"),
        Figure(f"{kind}: lease + ack", world.rate("lease", "ack"), 700e3, "jobs/s"),
    ]


def names() -> list[Figure]:
    """Pulls from a queue where ten thousand names are READY, beside those from one where one is."""
    handled: dict[str, frozenset[str] | None] = {
        "any name": None,
        "one name": frozenset([MANY_NAMES[0].name]),
        "5,000 names": frozenset(own.name for own in MANY_NAMES[::2]),
        "5,000 names, pushed last": frozenset([MANY_NAMES[0].name])
        | {own.name for own in MANY_NAMES[5_000:]},
    }
    return [
        Figure(
            f"10,000 names, {limit:3} of {kind}",
            _pull_seconds(MANY_NAMES, limit, names) / _pull_seconds(MANY_NAMES[:1], limit, names),
            2,
            "times",
        )
        for kind, names in handled.items()
        for limit in (1, BATCH // 10)
    ]


def _pull_seconds(options: list[JobOptions], limit: int, names: frozenset[str] | None) -> float:
    """What a pull takes of a queue that has jobs with each of these options."""
    world = World()
    for start in range(0, 3 * len(MANY_NAMES), BATCH):
        first = start % len(options)
        world.push_rows(options[first : first + BATCH])
    for _ in range(BATCHES // 10):
        world.push_rows(options[:1])
    for _ in range(BATCHES // 2):
        world.pull(limit, names)
    return world.seconds("pull")


def failures() -> list[Figure]:
    """Jobs that fail and will be tried again."""
    singles, members = World(), World()
    for _ in range(BATCHES // 4):
        singles.push_rows(PRIORITIES)
        members.push_lot()
    for _ in range(BATCHES // 4):
        singles.fail(singles.lease())
        members.fail(members.lease())
    return [
        Figure("single jobs: fail", singles.rate("fail"), 200e3, "jobs/s"),
        Figure("plain jobs: fail", members.rate("fail"), 100e3, "jobs/s"),
    ]


def sizes() -> list[Figure]:
    """Memory of a waiting job, its payload of 100 bytes included."""
    return [
        Figure("memory of a plain job", size_of(World.push_lot), 200, "bytes"),
        Figure(
            "memory of a job with options",
            size_of(lambda world: world.push_rows(PRIORITIES)),
            600,
            "bytes",
        ),
    ]


def size_of(push: Callable[[World], None]) -> float:
    """Bytes a job after many batches."""
    world = World()
    tracemalloc.start()
    for _ in range(BATCHES):
        push(world)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held / (BATCH * BATCHES)


def measure() -> list[Figure]:
    """Everything, in the order of the table."""
    from benchmarks.engine_groups import groups  # noqa: PLC0415  # it uses what is here
    from benchmarks.engine_sticky import sticky  # noqa: PLC0415  # the same

    memory.tune()
    return [
        *lots(),
        *shuffled(),
        *rows("jobs with priorities", PRIORITIES),
        *rows("jobs with names", NAMES),
        *names(),
        *failures(),
        *groups(),
        *sticky(),
        *sizes(),
    ]


def main() -> None:
    """Prints the table."""
    print(f"{'engine alone':34} {'measured':>12} {'wanted':>12}")
    for figure in measure():
        mark = "" if figure.is_met() else "  missed"
        numbers = f"{figure.measured:>12,.0f} {figure.wanted:>12,.0f}"
        print(f"{figure.work:34} {numbers} {figure.unit}{mark}")


if __name__ == "__main__":
    main()
