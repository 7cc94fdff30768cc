"""What a fair queue must do, said as plainly as can be; a part of the reference model.

Every tenant has a clock of worker time: it runs as fast as the tenant has ACTIVE jobs, and jumps by
a millisecond at each hand-out. Divided by the weight, with what ACTIVE jobs are expected to need,
it says who comes next. Where two are equal, the engine is free: the model is told whom it took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState, QueueSettings
from tests.unit.engine.reference_groups import ModelGroups
from tests.unit.engine.reference_jobs import ModelJob

EXPECTED_MS = 100
HANDOUT_MS = 1
# The engine counts nanoseconds, and rounds.
EQUAL_MS = Fraction(1, 100)


@dataclass
class ModelTenant:
    """Virtual time in milliseconds, and how long its attempts took."""

    weight: int
    expected_ms: int
    virtual_ms: Fraction = Fraction(0)
    took_ms: list[int] = field(default_factory=list)

    def mean_ms(self) -> int:
        return (self.expected_ms + sum(self.took_ms)) // (1 + len(self.took_ms))

    def key_ms(self, active: int) -> Fraction:
        return self.virtual_ms + Fraction(active * self.mean_ms(), self.weight)


@dataclass
class ModelShare:
    """The tenants of one fair queue, up to a moment."""

    at_ms: int
    tenants: dict[str, ModelTenant] = field(default_factory=dict)
    took_ms: list[int] = field(default_factory=list)
    present_ms: Fraction = Fraction(0)

    def expected_ms(self) -> int:
        return (EXPECTED_MS + sum(self.took_ms)) // (1 + len(self.took_ms))


class ModelFairness:
    """The fair queues. `settings` returns those of a queue, `live` the jobs in some states."""

    def __init__(
        self,
        settings: Callable[[str], QueueSettings],
        live: Callable[..., list[ModelJob]],
        groups: ModelGroups,
    ) -> None:
        self._settings = settings
        self._live = live
        self._groups = groups
        self.shares: dict[str, ModelShare] = {}

    def is_fair(self, queue: str) -> bool:
        return self._settings(queue).fair

    def jobs(self, queue: str, name: str, state: JobState) -> list[ModelJob]:
        return [job for job in self._live(state) if (job.queue, job.group) == (queue, name)]

    def active(self, queue: str, name: str) -> int:
        return len(self.jobs(queue, name, JobState.ACTIVE))

    def is_busy(self, queue: str, name: str) -> bool:
        return bool(self.active(queue, name) or self.jobs(queue, name, JobState.READY))

    def weight(self, queue: str, name: str) -> int:
        own = self._groups.groups.get((queue, name))
        weight = own.settings.weight if own is not None and name else None
        return weight or self._settings(queue).group.weight or 1

    def tenant(self, queue: str, name: str) -> ModelTenant:
        share = self.shares[queue]
        if name not in share.tenants:
            share.tenants[name] = ModelTenant(self.weight(queue, name), share.expected_ms())
        return share.tenants[name]

    def pass_time(self, mono_ms: int) -> None:
        """The clocks run."""
        for queue, share in self.shares.items():
            for name, tenant in share.tenants.items():
                used_ms = self.active(queue, name) * (mono_ms - share.at_ms)
                tenant.virtual_ms += Fraction(used_ms, tenant.weight)
            share.at_ms = mono_ms

    def start(self, queue: str, mono_ms: int) -> None:
        """All that are here are equal: the queue has become fair, or the server has started."""
        self.shares[queue] = ModelShare(mono_ms)
        for job in self._live(JobState.READY, JobState.ACTIVE):
            if job.queue == queue:
                self.tenant(queue, job.group)

    def change(self, queue: str, *, was_fair: bool, mono_ms: int) -> None:
        """The queue has other settings."""
        if not self.is_fair(queue):
            self.shares.pop(queue, None)
        elif not was_fair:
            self.start(queue, mono_ms)
            names = list(self.shares[queue].tenants)
            for name in names:
                self._hand_out(queue, name, self.active(queue, name))
            for name in names:
                if name and self.jobs(queue, name, JobState.READY):
                    self.catch_up(queue, name)

    def _hand_out(self, queue: str, name: str, count: int) -> None:
        """So many jobs become ACTIVE."""
        share, tenant = self.shares[queue], self.tenant(queue, name)
        tenant.virtual_ms += Fraction(count * HANDOUT_MS, tenant.weight)
        if count:
            share.present_ms = max(share.present_ms, tenant.virtual_ms)

    def catch_up(self, queue: str, name: str) -> None:
        """A tenant that was away has saved nothing up."""
        tenant, present_ms = self.tenant(queue, name), self.shares[queue].present_ms
        tenant.virtual_ms = max(tenant.virtual_ms, present_ms)

    def follow_closed(self, queue: str, name: str) -> None:
        """The engine is followed where jobs may wait for limiters, or for the rate of their group,
        which is used up after a restart: a tenant whose lanes were all closed was away when its
        next job came.
        """
        ready = self.jobs(queue, name, JobState.READY)
        group = self._groups.groups.get((queue, name))
        has_rate = bool(ready) and group is not None and group.settings.rate is not None
        if has_rate or any(job.options.rules.limiters for job in ready):
            self.catch_up(queue, name)

    def come(self, job: ModelJob) -> None:
        """A job is about to be READY."""
        if job.state is JobState.READY or not self.is_fair(job.queue):
            return
        if not self.jobs(job.queue, job.group, JobState.READY):
            self.catch_up(job.queue, job.group)

    def reopen(self, queue: str, name: str) -> None:
        """A group may be closed no more, or weigh something else."""
        share = self.shares.get(queue)
        if share is None or name not in share.tenants:
            return
        share.tenants[name].weight = self.weight(queue, name)
        if self.jobs(queue, name, JobState.READY):
            self.catch_up(queue, name)

    def settle(self, job: ModelJob, wall_ms: int) -> None:
        """A job is ACTIVE no more."""
        if self.is_fair(job.queue):
            took_ms = max(wall_ms - job.leased_ms, 0)
            self.tenant(job.queue, job.group).took_ms.append(took_ms)
            self.shares[job.queue].took_ms.append(took_ms)

    def rest(self) -> None:
        """Nobody needs to know of tenants without jobs, unless they have had more than others."""
        for queue, share in self.shares.items():
            busy = [name for name in share.tenants if self.is_busy(queue, name)]
            if not busy:
                share.tenants, share.present_ms = {}, Fraction(0)
            for name, tenant in list(share.tenants.items()):
                if name not in busy and tenant.virtual_ms <= share.present_ms:
                    del share.tenants[name]

    def room(self, queue: str, name: str) -> int:
        """How many more jobs of a tenant may be ACTIVE."""
        group = self._groups.groups.get((queue, name))
        if not name or group is None:
            return 1_000
        if group.is_stopped() or group.dead:
            return 0
        most = group.settings.concurrency or self._settings(queue).group.concurrency
        return 1_000 if most is None else max(most - self.active(queue, name), 0)

    def in_turn(self, jobs: Iterable[ModelJob], told: Sequence[int]) -> Iterable[ModelJob]:
        """Yields jobs of one queue, which come in the order of each tenant, as they are to be
        handed out; `told` are those that the engine has handed out.
        """
        listed = list(jobs)
        if any(job.options.rules.limiters for job in listed):
            # What limiters hold back had its turn all the same: the engine is followed.
            by_id = {job.id: job for job in listed}
            yield from [by_id[job_id] for job_id in told if job_id in by_id]
            return
        lines: dict[str, list[ModelJob]] = {}
        for job in listed:
            lines.setdefault(job.group, []).append(job)
        taken = dict.fromkeys(lines, 0)
        while True:
            keys = {
                name: self._key_ms(line[0].queue, name, taken[name])
                for name, line in lines.items()
                if line and self.room(line[0].queue, name)
            }
            if not keys:
                return
            first = [name for name, key in keys.items() if key <= min(keys.values()) + EQUAL_MS]
            told_of = [lines[name][0].id for name in first]
            told_id = next(iter(told[sum(taken.values()) :]), 0)
            name = first[told_of.index(told_id) if told_id in told_of else 0]
            job = lines[name].pop(0)
            yield job
            taken[name] += job.state is JobState.ACTIVE

    def _key_ms(self, queue: str, name: str, taken: int) -> Fraction:
        """Jobs that were taken are ACTIVE, and not charged yet."""
        tenant = self.tenant(queue, name)
        handed_ms = Fraction(taken * HANDOUT_MS, tenant.weight)
        return tenant.key_ms(self.active(queue, name)) + handed_ms

    def hand_out(self, queue: str, jobs: Sequence[ModelJob]) -> None:
        """These jobs are handed out."""
        if not self.is_fair(queue):
            return
        for name in dict.fromkeys(job.group for job in jobs):
            self._hand_out(queue, name, sum(job.group == name for job in jobs))


def compare_tenants(shard: Shard, model: ModelFairness, reached: Counter[str]) -> None:
    """Every tenant has used what the model says."""
    assert {name for name, one in shard.queues.items() if one.fair is not None} == set(model.shares)
    for name, share in model.shares.items():
        fair = shard.queues[name].fair
        assert fair is not None
        assert {tenant.name for tenant in fair.tenants} == set(share.tenants), name
        assert abs(Fraction(fair.present_ns, 1_000_000) - share.present_ms) < EQUAL_MS
        for tenant in fair.tenants:
            fair.charge(tenant)
            if tenant.key_ns() > share.tenants[tenant.name].key_ms(tenant.active) * 1_000_000:
                model.follow_closed(name, tenant.name)
            expected = share.tenants[tenant.name].key_ms(tenant.active)
            assert abs(Fraction(tenant.key_ns(), 1_000_000) - expected) < EQUAL_MS, tenant.name
        reached["tenant that is remembered"] += sum(not one.is_busy() for one in fair.tenants)
        reached["several tenants"] += len(share.tenants) > 1
