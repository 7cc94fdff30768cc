"""Limits of groups, said as plainly as can be: which jobs of a hand-out they let go, and when a
group that lets nothing out goes on. A part of the reference model.
"""

from __future__ import annotations

from jobline_server.engine.commands import ReleaseItem
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.values import JobState
from tests.unit.engine.reference_groups import ModelGroup
from tests.unit.engine.reference_jobs import Consumer, ModelJob, first
from tests.unit.engine.reference_state import ReferenceState

Key = tuple[str, str]
NAMES = ("g1", "g2")


class GroupLimits(ReferenceState):
    """Groups have rates, and are limited for a time."""

    def _rate(self, key: Key) -> RateLimit | None:
        own = self.groups.groups.get(key, ModelGroup()).settings.rate
        return own or self.settings(key[0]).group.rate

    def mark_continued(self, holder: Consumer, taken: list[ModelJob]) -> None:
        for job in taken:
            # None of them is the last one of its group yet.
            is_serial = bool(job.group) and self._is_serial(job)
            job.continues = is_serial and self.sticky.had_last(holder, job)

    def _is_serial(self, job: ModelJob) -> bool:
        if self.fairness.is_fair(job.queue):
            return False
        own, of_queue = self.groups.of(job).settings, self.settings(job.queue).group
        return first(own.concurrency, of_queue.concurrency, 1) == 1

    def expire_before_lease(self, name: str) -> None:
        if not self.queues[name].paused and any(
            job.queue == name for job in self.live(JobState.READY)
        ):
            self.expire()

    def start_timeout(self, job: ModelJob) -> None:
        timeout_ms = first(job.options.rules.timeout_ms, self.settings(job.queue).timeout_ms, 0)
        job.times_out_ms = self.mono_ms + timeout_ms if timeout_ms else 0

    def has_tokens(self, job: ModelJob, used_up: dict[Key, ModelJob]) -> bool:
        """Whether a job may start as far as its group goes; notes a group that has used up its
        rate, and its next job.
        """
        if not job.group:
            return True
        key = job.queue, job.group
        if key in used_up:
            return False
        if self.groups.rates.can_pay(key, self._rate(key), job.options, self.mono_ms):
            return True
        used_up[key] = job
        return False

    def take_group_tokens(self, job: ModelJob) -> None:
        if job.group:
            assert self.groups.rates.buckets[job.queue, job.group].pays(job.options)

    def follow_closed(
        self, queue: str, opens: dict[str, int | None], used_up: dict[Key, ModelJob]
    ) -> None:
        """Where a fair queue, or one with ageing, has limiters the engine is followed: the groups
        that it has closed have a job without tokens, which get them at the moment that it says.
        """
        jobs = [job for job in self.live(JobState.READY, JobState.ACTIVE) if job.queue == queue]
        is_followed = self.fairness.is_fair(queue) or self.settings(queue).ageing is not None
        if not is_followed or not any(job.options.rules.limiters for job in jobs):
            return
        for name, opens_ms in opens.items():
            key = queue, name
            if opens_ms is not None and self.groups.groups[key].opens_ms is None:
                ready = [job for job in jobs if job.group == name and job.state is JobState.READY]
                rates, rate = self.groups.rates, self._rate(key)
                used_up[key] = next(
                    job
                    for job in ready
                    if not rates.can_pay(key, rate, job.options, self.mono_ms)
                    and rates.opens_ms(key, job.options, self.mono_ms) == opens_ms
                )

    def close_groups(self, used_up: dict[Key, ModelJob]) -> None:
        """They let nothing out until there are tokens for their next jobs."""
        for key, job in used_up.items():
            group = self.groups.groups[key]
            group.opens_ms = self.groups.rates.opens_ms(key, job.options, self.mono_ms)
            self.groups.hold_back(*key, self._ready_ids())

    def limit_group(self, key: Key, until_ms: int) -> None:
        """Somebody says until when, or lifts that limit."""
        group = self.groups.groups.setdefault(key, ModelGroup())
        if until_ms > self.wall_ms:
            group.limited_until_ms, group.opens_ms = until_ms, None
            self.groups.hold_back(*key, self._ready_ids())
        elif group.limited_until_ms is not None:
            group.limited_until_ms = None
            self._go_on(key)

    def limit_as_told(self, job: ModelJob, item: ReleaseItem) -> None:
        """A worker says until when; it takes no time back."""
        if not item.until_ms:
            return
        if not job.group:
            queue = self.queues[job.queue]
            queue.limited_until_ms = max(queue.limited_until_ms, item.until_ms)
            return
        group = self.groups.of(job)
        closed_ms = 0 if group.opens_ms is None else group.opens_ms - self.mono_ms + self.wall_ms
        if item.until_ms > max(group.limited_until_ms or 0, closed_ms):
            self.limit_group((job.queue, job.group), item.until_ms)

    def ask_groups(self, queue: str, name: str = "") -> None:
        """A rate was changed: groups that have used up theirs are looked at in the next tick."""
        for key, group in self.groups.groups.items():
            if key[0] == queue and name in ("", key[1]) and group.opens_ms is not None:
                group.opens_ms = self.mono_ms

    def open_groups(self) -> None:
        """Those whose time has come go on."""
        for key, group in sorted(self.groups.groups.items()):
            is_limited = (group.limited_until_ms or 0) > self.wall_ms
            is_closed = group.opens_ms is not None and group.opens_ms > self.mono_ms
            if not is_limited and not is_closed:
                was_closed = group.limited_until_ms is not None or group.opens_ms is not None
                group.limited_until_ms = group.opens_ms = None
                if was_closed:
                    self._go_on(key)

    def _go_on(self, key: Key) -> None:
        self.groups.go_on(*key)
        self.fairness.reopen(*key)

    def restart_groups(self) -> None:
        """Buckets are empty; groups that have used up their rates have a token soon."""
        keys = [(queue, name) for queue in self.queues for name in NAMES]
        rates = {key: self._rate(key) for key in keys}
        self.groups.rates.restart(rates, self.mono_ms)
        for key, group in self.groups.groups.items():
            rate = rates[key]
            if group.opens_ms is not None:
                group.opens_ms = self.mono_ms
                if rate is not None:
                    group.opens_ms -= -rate.period_ms // rate.rate

    def _ready_ids(self) -> list[int]:
        return [job.id for job in self.live(JobState.READY)]
