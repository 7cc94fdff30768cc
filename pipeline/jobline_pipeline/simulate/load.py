"""The load of a simulated server: its queues, their workers, and what goes wrong when."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

HOUR_US = 3_600_000_000
SHARDS = 4
VERSIONS = ("1.4.2", "1.5.0")
MAX_ATTEMPTS = 4
# Of attempts: leases lost, given back. Of jobs: cancelled or expired before they ran.
STALL_SHARE, RELEASE_SHARE, CANCEL_SHARE, EXPIRE_SHARE = 0.002, 0.002, 0.003, 0.001
LEASE_US = 30_000_000
_BURST_FAILURE = 0.35


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """One queue: its share of all jobs, mean service time, share of failures, number of groups."""

    name: str
    share: float
    service_ms: float
    failure: float
    groups: int = 0

    @property
    def shard(self) -> int:
        """The shard of the queue, as the server has it."""
        return crc32(self.name.encode()) % SHARDS


QUEUES = (
    QueueLoad("mail", 0.18, 120, 0.015, groups=300),
    QueueLoad("webhooks", 0.16, 200, 0.05, groups=120),
    QueueLoad("images", 0.14, 900, 0.01),
    QueueLoad("push", 0.14, 30, 0.004),
    QueueLoad("search", 0.12, 60, 0.002),
    QueueLoad("thumbnails", 0.06, 250, 0.008),
    QueueLoad("invoices", 0.05, 400, 0.012, groups=60),
    QueueLoad("sync", 0.05, 500, 0.03),
    QueueLoad("billing", 0.04, 300, 0.006, groups=60),
    QueueLoad("exports", 0.03, 4000, 0.02),
    QueueLoad("reports", 0.02, 8000, 0.015),
    QueueLoad("audit-log", 0.01, 20, 0.001),
)
NAMES = tuple(f"{queue.name}.{verb}" for queue in QUEUES for verb in ("send", "check", "repair"))
PRINCIPALS = ("shop", "billing-api", "crm", "ops@example.com")
ERROR_TYPES = ("TimeoutError", "ConnectionError", "ValueError", "HTTPError", "IntegrityError")


@dataclass(frozen=True, slots=True)
class Load:
    """How many jobs of which queue arrive in each hour.

    `start_us` is the first moment in microseconds since 1970, `hours` the length, `jobs` how many
    are pushed in all of them.
    """

    jobs: int
    hours: int
    start_us: int
    seed: int

    def arrivals(self, queue: int) -> NDArray[np.int64]:
        """Returns how many jobs of a queue are pushed in each hour: few at night, many at noon."""
        return _arrivals(self, queue)

    def workers(self, queue: int) -> int:
        """Returns how many workers a queue has: a little more than its busiest hour needs."""
        return math.ceil(self.offered(queue, int(self.arrivals(queue).max())) * 1.15) + 1

    def offered(self, queue: int, jobs_an_hour: int) -> float:
        """Returns the load in workers that are busy all the time, with repeats of failed jobs."""
        return jobs_an_hour / 3600.0 * QUEUES[queue].service_ms / 1000.0 * 1.05

    def burst(self, queue: int) -> tuple[int, int]:
        """Returns from when until when most attempts of a queue fail; some queues have no burst."""
        return _burst(self, queue)

    @property
    def deployed_us(self) -> int:
        """When the newer version was deployed."""
        return self.start_us + int(self.hours * 0.6 * HOUR_US)

    @property
    def end_us(self) -> int:
        """When the history ends; jobs that live on are open."""
        return self.start_us + self.hours * HOUR_US

    def failure_of(
        self, queue: NDArray[np.int8], at: NDArray[np.int64], version: NDArray[np.int8]
    ) -> NDArray[np.float64]:
        """Returns the chance that an attempt fails: of its queue, its version, and in a burst."""
        chance = np.array([load.failure for load in QUEUES])[queue]
        broken = (version == 1) & (queue == 6)
        chance = np.where(broken, chance * 6.0, chance)
        bursts = np.array([self.burst(number) for number in range(len(QUEUES))])
        inside = (at >= bursts[queue, 0]) & (at < bursts[queue, 1])
        return np.where(inside, _BURST_FAILURE, chance)


@functools.lru_cache
def _arrivals(load: Load, queue: int) -> NDArray[np.int64]:
    hour = np.arange(load.hours) + (load.start_us // HOUR_US) % 24
    shape = 1.0 + 0.75 * np.sin((hour - 8.0) * math.pi / 12.0)
    wanted = load.jobs * QUEUES[queue].share * shape / shape.sum()
    ends = np.rint(np.cumsum(wanted)).astype(np.int64)
    counts: NDArray[np.int64] = np.diff(ends, prepend=0)
    return counts


@functools.lru_cache
def _burst(load: Load, queue: int) -> tuple[int, int]:
    chance = np.random.default_rng([load.seed, queue, 1])
    if chance.random() < 0.4:
        return 0, 0
    length = int(chance.uniform(0.1, 0.5) * HOUR_US)
    begin = load.start_us + int(chance.uniform(0.1, 0.9) * load.hours * HOUR_US)
    return begin, begin + length


@functools.lru_cache
def waiting(load: Load) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns by queue and hour: the chance that a job waits, and its mean wait then, in µs."""
    share = np.zeros((len(QUEUES), load.hours))
    mean_us = np.zeros((len(QUEUES), load.hours))
    for number, queue in enumerate(QUEUES):
        workers = load.workers(number)
        for hour, count in enumerate(load.arrivals(number)):
            offered = load.offered(number, int(count))
            share[number, hour] = erlang_c(workers, offered)
            mean_us[number, hour] = queue.service_ms * 1000.0 / (workers - offered)
    return share, mean_us


def messages(seed: int) -> list[str]:
    """Returns the error messages of a history: a few sentences, each with other numbers and names.

    Message `m` belongs to error type `m % len(ERROR_TYPES)`.
    """
    chance = np.random.default_rng([seed, 99])
    made = []
    for number in range(2000):
        big, small = int(chance.integers(10_000, 10_000_000)), int(chance.integers(1, 60))
        made.append(
            (
                f"timed out after {small}.0 s reading from 10.0.{small}.7:443",
                f"connection to db-{small % 4}.internal:5432 refused",
                f"invalid address for customer {big}: '@' is missing",
                f"POST https://api.example.com/v1/orders/{big} answered 503 Service Unavailable",
                f"duplicate key value violates unique constraint: order {big} in /data/{big}.db",
            )[number % 5]
            + ("" if number % 3 else f", request {big:08x}-1f2e-4d3c-8b9a-{big:012x}")
        )
    return made


def erlang_c(workers: int, offered: float) -> float:
    """Returns the chance that an arrival waits, with `workers` servers and `offered` Erlangs."""
    blocked = 1.0
    for count in range(1, workers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    return workers * blocked / (workers - offered * (1.0 - blocked))
