"""Rules of the random histories by which jobs are leased."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from jobline_server.engine.ageing import Ageing
from jobline_server.engine.commands import LeasedJob, Push
from jobline_server.engine.decide.lease import decide_lease
from jobline_server.engine.decide.queues import decide_update_queue
from tests.pushed_payloads import options_of, payloads_of
from tests.unit.engine.histories import OPTIONS, QUEUE
from tests.unit.engine.limiter_rules import open_limiters
from tests.unit.engine.side_by_side import SideBySide, reached

AGEINGS = [Ageing(2_000), Ageing(1_000, 2, 1), Ageing(1_000)]


class LeaseRules(RuleBasedStateMachine):
    """Jobs are handed out, in the same order by both."""

    def __init__(self) -> None:
        super().__init__()
        self.both = SideBySide()

    @rule(
        queue=QUEUE,
        worker=st.sampled_from(["w1", "w2", ""]),
        most=st.sampled_from([1, 3, 20]),
        max_bytes=st.sampled_from([1_000, 1_000, 1_000, 5, 0]),
        names=st.sampled_from(
            [None, None, None, None, frozenset({""}), frozenset({"mail"}), frozenset({"x"})]
        ),
        lease_ms=st.sampled_from([0, 0, 7_300]),
        behind=st.sampled_from([0, 0, 0, 1, 2]),
    )
    def lease(self, queue, worker, most, max_bytes, names, lease_ms, behind):
        """The journal takes what was recorded; the disk may be some turns behind."""
        self._lease(queue, worker, most, max_bytes, names, lease_ms, behind)

    def _lease(self, queue, worker, most, max_bytes, names, lease_ms, behind):
        both = self.both
        both.commit(behind)
        both.begin()
        if queue not in both.shard.queues:
            return
        if worker and worker in both.sessions and both.sessions[worker].disconnected_ms is not None:
            return
        holder, consumer = both.session(worker) if worker else both.pull()
        open_limiters(both)
        # Where limiters are, all jobs fit: one that does not holds up those behind it only until a
        # limiter has closed its lane.
        max_bytes, slots = (1_000, 1_000) if both.shard.limiters else (max_bytes, most)
        given = most, max_bytes, slots
        room = list(given)
        leased = part = self._decide_lease(queue, holder, room, names, lease_ms)
        known = both.shard.queues[queue]
        have_rates = known.groups.have_rates or known.settings.group.rate is not None
        while part and (both.shard.limiters or have_rates):
            # Behind jobs that limiters and groups held back others may go out.
            part = self._decide_lease(queue, holder, room, names, lease_ms)
            leased = [*leased, *part]
        both.shard.clocks.arm(holder)
        told = [job_id for part in leased for job_id in _ids(part)]
        closed = {group.name: _opens_ms(group, both.now) for group in known.groups}
        expected = both.model.lease(queue, consumer, given, names, lease_ms, (told, closed))
        found = [self._told(item) for item in leased]
        priorities = [job.options.priority for job in expected]
        of_tenants = both.model.settings(queue).fair
        reached["aged job before a higher one"] += (
            priorities != sorted(priorities, reverse=True) and not of_tenants
        )
        assert [one for part in found for one in part] == [
            (
                (job.id, job.delivery, job.payload, job.lease_ms, job.attempts + 1, job.why),
                (job.options, job.job_key, job.continues),
            )
            for job in expected
        ]
        both.leases |= {(job.id, job.delivery): None for job in expected}
        # Those in the places of jobs that expired: the next commit has them, too.
        both.place_freed()

    def _decide_lease(self, queue, holder, room, names, lease_ms):
        """Leases up to the jobs, bytes and slots in `room`; cuts it by what was leased."""
        both = self.both
        leased = decide_lease(
            both.shard,
            both.now,
            both.shard.queues[queue],
            holder,
            max_jobs=min(room[0], room[2]),
            max_bytes=room[1],
            names=names,
            lease_ms=lease_ms,
            max_slots=room[2],
        )
        room[0] -= leased.count()
        room[1] -= leased.payload_bytes()
        room[2] -= sum(
            (1 if isinstance(item, LeasedJob) else item.count()) * (item.options.rules.slots or 1)
            for item in leased.items()
        )
        return leased.items()

    @rule(worker=st.sampled_from(["w1", "w2", ""]))
    def lease_everything(self, worker):
        """What most steps need: jobs that somebody has."""
        for queue in ("a", "b"):
            self._lease(queue, worker, 20, 1_000, None, 0, 0)

    @rule(queue=QUEUE, ageing=st.sampled_from(AGEINGS), most=st.sampled_from([1, 3, 20]))
    def lease_by_age(self, queue, ageing, most):
        """What has waited goes before what is new and of a higher priority."""
        both = self.both
        both.begin()
        wanted = replace(both.model.settings(queue), ageing=ageing)
        decide_update_queue(both.shard, both.now, queue, wanted, None)
        both.model.set_settings(queue, wanted)
        both.push(Push(queue, OPTIONS[0], payloads=payloads_of([b"x"] * 2)))
        both.wait(2_000)
        both.push(Push(queue, OPTIONS[1], payloads=payloads_of([b"x"] * 2)))
        self._lease(queue, "w1", most, 1_000, None, 0, 0)

    def _told(self, item):
        if isinstance(item, LeasedJob):
            lease = item.id, item.delivery, item.payload, item.lease_ms, item.attempt, item.reason
            return [(lease, (item.options, item.job_key, item.continues_group))]
        jobs = []
        for index, payload in enumerate(item.payloads):
            one = item.first_id + index, item.delivery, payload, item.lease_ms, 1, 1
            options = options_of(item.payloads, index, item.options)
            jobs.append((one, (options, item.payloads.job_key_of(index), False)))
        return jobs


def _opens_ms(group, now):
    """When a group that has used up its rate goes on; None for others."""
    is_closed = group.limited is not None and group.is_used_up
    return group.limited.until_ms - now.wall_ms + now.mono_ms if is_closed else None


def _ids(item):
    return [item.id] if isinstance(item, LeasedJob) else [*range(*_span(item))]


def _span(run):
    return run.first_id, run.first_id + len(run.payloads)
