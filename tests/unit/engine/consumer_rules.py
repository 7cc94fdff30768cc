"""Rules of the random histories that consumers take part in: leases, and how they are settled."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from jobline_server.engine.commands import ExtendItem, FailItem, ReleaseItem
from jobline_server.engine.decide.ack import decide_ack
from jobline_server.engine.decide.once import decide_abandon
from jobline_server.engine.decide.settle import decide_extend, decide_fail, decide_release
from jobline_server.engine.holder import graces_in
from jobline_server.engine.job_log import NewLine
from jobline_server.engine.values import (
    FailAction,
    JobError,
    JobState,
    ReleaseReason,
    RevokeReason,
    SettleOutcome,
)
from tests.unit.engine import reference_once
from tests.unit.engine.histories import DELAYS, PICKS, WORKER
from tests.unit.engine.lease_rules import LeaseRules
from tests.unit.engine.side_by_side import reached


def held(machine):
    return machine.both.leases


def has_sessions(machine):
    return machine.both.sessions


class ConsumerRules(LeaseRules):
    """Leases are kept, settled and lost."""

    @precondition(held)
    @rule(picks=PICKS, results=st.lists(st.sampled_from([b"", b"", b"done"]), max_size=6))
    def ack(self, picks, results):
        both = self.both
        both.begin()
        leases = [both.lease_at(pick) for pick in picks]
        left = {
            job_id: result for (job_id, _), result in zip(leases, results, strict=False) if result
        }
        ids, deliveries = [one for one, _ in leases], [one for _, one in leases]
        found = decide_ack(both.shard, both.now, ids, deliveries, left)
        outcomes = []
        for lease in leases:
            outcomes.append(both.model.ack(*lease, left.get(lease[0], b"")))
            if len(set(ids)) < len(ids):
                # A list that names a job twice is decided one by one.
                both.model.hand_over()
        both.note_endings()
        assert explained(found, leases, both) == explained(unusual(outcomes), leases, both)

    @precondition(held)
    @rule(mask=st.integers(1, 255), backwards=st.booleans(), left=st.booleans())
    def ack_held(self, mask, backwards, left):
        """The usual case: what is held is acked, all or some, in order or not, each once."""
        both = self.both
        both.begin()
        jobs = [job for i, job in enumerate(both.model.live(JobState.ACTIVE)) if mask >> i % 8 & 1]
        if backwards:
            jobs.reverse()
        ids, deliveries = [job.id for job in jobs], [job.delivery for job in jobs]
        results = {ids[-1]: b"done"} if left and ids else {}
        found = decide_ack(both.shard, both.now, ids, deliveries, results)
        outcomes = [both.model.ack(job.id, job.delivery, results.get(job.id, b"")) for job in jobs]
        assert sorted(found) == unusual(outcomes)

    @precondition(held)
    @rule(
        picks=PICKS,
        then=st.sampled_from([*FailAction, FailAction.RETRY]),
        retry_after_ms=st.sampled_from([None, None, 0, 1_500]),
        error=st.sampled_from([JobError("Odd"), JobError("Fatal")]),
    )
    def fail(self, picks, then, retry_after_ms, error):
        both = self.both
        both.begin()
        leases = [both.lease_at(pick) for pick in picks]
        items = [FailItem(*lease, error, then, retry_after_ms) for lease in leases]
        found = [
            (r.outcome, r.state, r.run_at_ms) for r in decide_fail(both.shard, both.now, items)
        ]
        assert found == [both.model.fail(item) for item in items]

    @precondition(held)
    @rule(
        picks=PICKS,
        delays=st.lists(DELAYS, min_size=6, max_size=6),
        why=st.sampled_from([ReleaseReason.SNOOZE, ReleaseReason.UNDELIVERED]),
        limited_ms=st.sampled_from([0, 0, 0, 3_000]),
    )
    def release(self, picks, delays, why, limited_ms):
        both = self.both
        both.begin()
        until_ms = both.now.wall_ms + limited_ms if limited_ms else 0
        items = [
            ReleaseItem(*both.lease_at(pick), delay, why, until_ms)
            for pick, delay in zip(picks, delays, strict=False)
        ]
        found = decide_release(both.shard, both.now, items)
        assert sorted(found) == unusual(both.model.release(items))

    @precondition(held)
    @rule(picks=PICKS)
    def abandon(self, picks):
        """A worker says goodbye and has jobs in hand."""
        both = self.both
        both.begin()
        why = ReleaseReason.INTERRUPTED
        leases = dict.fromkeys(both.lease_at(pick) for pick in picks)
        items = [ReleaseItem(*lease, why=why) for lease in leases]
        active = both.model.live(JobState.ACTIVE)
        workers = {job.id: job.holder.worker for job in active if job.holder is not None}
        decide_abandon(both.shard, both.now, items)
        for job in reference_once.abandon(both.model, items):
            lost = (workers[job.id], job.id, job.delivery, RevokeReason.LEASE_LOST)
            both.expected_revokes.append(lost)

    @precondition(held)
    @rule(picks=PICKS)
    def crash(self, picks):
        """What runs jobs crashes, one after the other, and their worker says so."""
        both = self.both
        for lease in dict.fromkeys(both.lease_at(pick) for pick in picks):
            both.begin()
            active = both.model.live(JobState.ACTIVE)
            workers = {job.id: job.holder.worker for job in active if job.holder is not None}
            item = ReleaseItem(*lease, why=ReleaseReason.CRASHED)
            found = decide_release(both.shard, both.now, [item])
            outcome, job = reference_once.crash(both.model, item)
            assert found == unusual([outcome])
            if job is not None:
                reached[f"crashed: {outcome.name}, {job.state.name}"] += 1
                lost = (workers[job.id], job.id, job.delivery, RevokeReason.LEASE_LOST)
                both.expected_revokes.append(lost)

    @precondition(held)
    @rule(
        picks=PICKS,
        lease_ms=st.sampled_from([None, 9_300]),
        progress=st.sampled_from([None, None, 50.0]),
        checkpoint=st.sampled_from([None, None, b"half way"]),
        lines=st.sampled_from(["", "", "a", "bcde"]),
        phase=st.sampled_from(["", "one", "two", "three"]),
    )
    def extend(self, picks, lease_ms, progress, checkpoint, lines, phase):
        both = self.both
        both.begin()
        items = [
            ExtendItem(
                *both.lease_at(pick),
                lease_ms,
                progress,
                None,
                checkpoint,
                list(map(NewLine, lines)),
                phase,
                b"r"[: len(phase)],
            )
            for pick in picks
        ]
        found = decide_extend(both.shard, both.now, items)
        assert sorted(found) == unusual([both.model.extend(item) for item in items])

    @precondition(held)
    @rule(then=st.sampled_from([FailAction.DEAD, FailAction.RETRY]))
    def fail_what_groups_let_in(self, then):
        """The heads of groups die, or hold their groups for a while."""
        both = self.both
        both.begin()
        jobs = [job for job in both.model.live(JobState.ACTIVE) if job.group]
        items = [FailItem(job.id, job.delivery, JobError("Odd"), then, None) for job in jobs]
        found = [
            (r.outcome, r.state, r.run_at_ms) for r in decide_fail(both.shard, both.now, items)
        ]
        assert found == [both.model.fail(item) for item in items]

    @rule(phase=st.sampled_from(["one", "one", "two"]))
    def finish_phases(self, phase):
        """Jobs in phases get on with them."""
        self.lease_everything("w1")
        both = self.both
        both.begin()
        jobs = [job for job in both.model.live(JobState.ACTIVE) if job.options.rules.phases]
        items = [ExtendItem(job.id, job.delivery, phase=phase, phase_result=b"r") for job in jobs]
        found = decide_extend(both.shard, both.now, items)
        assert sorted(found) == unusual([both.model.extend(item) for item in items])

    @rule(worker=st.sampled_from(["w1", "w2", ""]))
    def let_leases_end(self, worker):
        """Whoever has jobs says nothing of them."""
        self.lease_everything(worker)
        self.both.wait(10_000)

    @rule(worker=WORKER)
    def lose_a_worker(self, worker):
        """One that has jobs is gone, for longer than its leases wait for it."""
        self._lease("a", worker, 20, 1_000, None, 0, 0)
        one, holder = self.both.sessions.get(worker), self.both.shard.clocks.holders.get(worker)
        if one is not None and holder is not None and one.disconnected_ms is None:
            self._break_stream(one, holder, 300)
            self.both.wait(2_000)

    @precondition(has_sessions)
    @rule(worker=WORKER, grace_ms=st.sampled_from([None, 300, 3_300]))
    def connection_changes(self, worker, grace_ms):
        """A connected worker is heard, or its stream breaks; a lost one comes back, in time to keep
        its leases or too late."""
        both = self.both
        one, holder = both.sessions.get(worker), both.shard.clocks.holders.get(worker)
        if one is None or holder is None:
            both.sessions.pop(worker, None)
        elif one.disconnected_ms is not None:
            both.shard.clocks.resume(both.now, holder)
            one.disconnected_ms, one.last_seen_ms = None, both.now.mono_ms
        elif grace_ms is None:
            both.session(worker)
        else:
            self._break_stream(one, holder, grace_ms)

    def _break_stream(self, one, holder, grace_ms):
        both = self.both
        graces = graces_in(both.shard.queues, [("a", 1), ("b", 1)])
        both.shard.clocks.disconnect(both.now, holder, grace_ms=grace_ms, graces=graces)
        one.disconnected_ms, one.grace_ms = both.now.mono_ms, grace_ms
        settings = {name: both.model.settings(name) for name in ("a", "b")}
        own = {name: of.disconnect_grace_ms for name, of in settings.items()}
        one.graces = {name: ms for name, ms in own.items() if ms is not None}


def explained(found, leases, both):
    """As the caller is told in the end: what ended under another lease is LEASE_LOST. Within one
    call the engine says so at once, where one id comes with two deliveries."""
    return [(index, _explained(outcome, leases[index], both)) for index, outcome in sorted(found)]


def _explained(outcome, lease, both):
    job_id, delivery = lease
    ended = both.kept.get(job_id)
    if outcome is SettleOutcome.NOT_FOUND and ended and ended[1].delivery != delivery:
        return SettleOutcome.LEASE_LOST
    return outcome


def unusual(outcomes):
    """What the engine tells: outcomes that are not DONE, by index."""
    return [(i, one) for i, one in enumerate(outcomes) if one is not SettleOutcome.DONE]
