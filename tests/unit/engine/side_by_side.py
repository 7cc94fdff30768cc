"""The engine and the reference model side by side: what is done to both, and how they are compared.

Clocks stand at half a second, leases end at eight tenths: so no lease ends at the very moment of a
tick, where the wheel's slots may notice it a second sooner or later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

from jobline_server.engine import invariants
from jobline_server.engine.commands import Push, Pushed, Refused
from jobline_server.engine.decide import timers
from jobline_server.engine.endings import Ending
from jobline_server.engine.entries import Fact, JobDied, JobsLeased
from jobline_server.engine.holder import Holder
from jobline_server.engine.load import Load
from jobline_server.engine.records import JobRecord
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState, Now, RevokeReason
from jobline_server.runtime.calls.flows import FlowPart
from tests.pushed_flows import decide_flow
from tests.pushed_outcomes import outcomes_of
from tests.shard_image import counting_at, image_of
from tests.unit.engine import (
    reference_dependencies,
    reference_flows,
    reference_push,
    told_beside,
)
from tests.unit.engine.come_to import named, note_reached
from tests.unit.engine.compared_jobs import compare_counts, compare_ended, compare_live
from tests.unit.engine.effects_of import forget_revoked, revoked_in, take_endings
from tests.unit.engine.histories import START
from tests.unit.engine.reference_fair import compare_tenants
from tests.unit.engine.reference_jobs import Consumer
from tests.unit.engine.reference_model import ReferenceModel
from tests.unit.engine.retention_beside import RetentionBeside, aged_out
from tests.unit.engine.world import records_of

LIVE = (JobState.SCHEDULED, JobState.BLOCKED, JobState.READY, JobState.ACTIVE)
VERSIONS = {"w1": "1.9", "w2": "1.10.0"}
Revoke = tuple[str, int, int, RevokeReason]

reached: Counter[str] = Counter()
"""How often histories came to what is rare; what never happens is not tested."""


class SideBySide:
    """One shard and one model, and the consumers that both know."""

    def __init__(self) -> None:
        self.now = START
        self.shard = Shard(1, epoch=7, load=Load())
        self.model = ReferenceModel(self.shard.first_delivery())
        self.journal: list[tuple[int, Fact]] = []
        self.sessions: dict[str, Consumer] = {}
        self.names: dict[int, Consumer] = {}
        self.pulls = 0
        self.leases: dict[tuple[int, int], None] = {}
        self.kept: dict[int, tuple[JobState, JobRecord]] = {}
        self.expected_revokes: list[Revoke] = []
        self.retention = RetentionBeside()

    def begin(self) -> None:
        """Both see the same time and the same place in the journal."""
        self.shard.clocks.advance(self.now)
        self.model.begin(self.now, self.shard.next_offset, self.shard.committed)
        self.place_freed()
        for job in self.model.jobs.values():
            # What left its lot has all in its options.
            job.beside_bytes *= job.id not in self.shard.jobs

    def place_freed(self) -> None:
        """Groups that were freed in one step let their next jobs in, in the engine's order."""
        self.model.place_freed(self._grouped())

    def _grouped(self) -> list[int]:
        """The jobs of groups, in the order in which they came to the tails."""
        jobs = [job for job in self.shard.jobs.values() if job.ties.group]
        return [job.id for job in sorted(jobs, key=lambda job: job.order)]

    # Producers.

    def push(self, command: Push) -> None:
        self.begin()
        count = len(command.rows) + len(command.payloads)
        expected: reference_push.Outcomes | str
        try:
            expected = reference_push.push(self.model, command, self.shard.next_id())
        except reference_push.Refusal as refusal:
            expected = str(refusal)
        found: reference_push.Outcomes | str
        try:
            found = outcomes_of(self._decide(command), count)
        except Refused as refused:
            found = refused.kind.value
        assert found == expected
        for job_id in self.model.superseded:
            job = self.model.jobs[job_id]
            assert job.holder is not None
            revoked = (job.holder.worker, job.id, job.delivery, RevokeReason.CANCELLED)
            self.expected_revokes.append(revoked)
        self.model.superseded.clear()
        if isinstance(found, str):
            reached[f"push refused: {found}"] += 1
        else:
            reached.update(f"push: {named(outcome)}" for outcome, _ in found)
            plain = found[len(command.rows) :]
            reached.update(f"push: {named(outcome)} of a payload" for outcome, _ in plain)

    def push_flow(self, parts: Sequence[FlowPart]) -> None:
        """Both store all jobs of a flow, or refuse it for the same reason and change nothing."""
        self.begin()
        recorded, next_id = len(self.shard.entries), self.shard.next_id()
        try:
            expected: list[int] | str = reference_flows.push_flow(self.model, parts, next_id)
        except reference_push.Refusal as refusal:
            expected = str(refusal)
        try:
            found: list[int] | str = decide_flow(parts, lambda _: (self.shard, self.now))
        except Refused as refused:
            found = refused.kind.value
            assert len(self.shard.entries) == recorded
        assert found == expected
        if isinstance(found, str):
            reached[f"flow refused: {found}"] += 1
        else:
            reached["flow" if min(found) >= next_id else "flow: again"] += 1

    def _decide(self, command: Push) -> Pushed:
        pushed, looked_up = told_beside.decide(self.shard, self.now, self.model, command)
        reached["push: looked up"] += looked_up
        return pushed

    def tell(self) -> None:
        """Who waits for the unique key of an ended job goes on, then who waits for its end."""
        self.begin()
        self.model.hand_over()
        reached["parent looked up"] += told_beside.tell(self.shard, self.now, self.model)

    # Consumers.

    def session(self, worker: str) -> tuple[Holder, Consumer]:
        """A connected worker, who was heard just now."""
        version = VERSIONS[worker]
        holder = self.shard.clocks.holder_of(worker, worker, version)
        known = Consumer(worker, session=True, version=version)
        consumer = self.sessions.setdefault(worker, known)
        holder.last_seen_ms = consumer.last_seen_ms = self.now.mono_ms
        return holder, consumer

    def pull(self) -> tuple[Holder, Consumer]:
        """Somebody who asks once."""
        self.pulls += 1
        worker = f"pull {self.pulls}"
        return Holder(worker, ""), Consumer(worker, session=False)

    def lease_at(self, pick: int) -> tuple[int, int]:
        """A lease that is held, or was held once, or is another job's, or nobody's."""
        held = [(job.id, job.delivery) for job in self.model.live(JobState.ACTIVE)]
        known = [*held * 3, *self.leases]
        if not known:
            return pick, pick
        job_id, delivery = known[pick % len(known)]
        return (
            (job_id + pick % 2, delivery + pick % 3 - 1) if pick % 11 == 0 else (job_id, delivery)
        )

    def ids_at(self, picks: list[int]) -> list[int]:
        """Ids of jobs that are live, or were, or never will be."""
        known = [*self.model.jobs, 1]
        return [known[pick % len(known)] for pick in picks]

    # Time and the disk.

    def wait(self, ms: int) -> None:
        """Time goes on, and what is due then is done."""
        self.now = Now(self.now.wall_ms + ms, self.now.mono_ms + ms)
        self.tick()

    def tick(self) -> None:
        """Does what is due in both; holders are looked at in the engine's order, which is free."""
        self.begin()
        timers.open_gates(self.shard, self.now)
        self.model.sticky.look(self.now.mono_ms)
        before, applied = len(revoked_in(self.shard)), len(self.shard.applied)
        # Dependents are told one decision at a time, by `tell`.
        with patch.object(timers, "release_dependents", return_value=False):
            while timers.tick(self.shard, self.now):
                pass
        revoked = revoked_in(self.shard)[before:]
        workers = dict.fromkeys(holder.worker for holder, *_ in revoked)
        active = self.model.live(JobState.ACTIVE)
        consumers = {job.holder.worker: job.holder for job in active if job.holder}
        order = [consumers[worker] for worker in workers]
        order += [one for worker, one in consumers.items() if worker not in workers]
        facts = [fact for fact, *_ in self.shard.applied[applied:]]
        died = [fact.id for fact in facts if isinstance(fact, JobDied)]
        for consumer, job_id, delivery, reason in self.model.tick(order, self._grouped(), died):
            self.expected_revokes.append((consumer.worker, job_id, delivery, reason))
        self.place_freed()
        reference_dependencies.time_out(self.model)

    def flush(self) -> None:
        """The journal takes what was recorded."""
        offset = self.shard.next_offset
        self.journal += [(offset, fact) for fact in self.shard.take_entries()]

    def commit(self, behind: int) -> None:
        """What was recorded is on disk, but for the last turns."""
        self.flush()
        shard = self.shard
        shard.committed = max(shard.committed, shard.next_offset - 1 - behind)

    def recovered(self) -> Shard:
        """A shard made from the journal, as after a restart."""
        old = self.shard
        shard = Shard(old.number, epoch=old.epoch + 1, next_sequence=old.next_sequence, load=Load())
        for offset, fact in self.journal:
            shard.replay(
                replace(fact, holder=None) if isinstance(fact, JobsLeased) else fact, offset
            )
        shard.next_offset = old.next_offset
        shard.committed = old.next_offset - 1
        shard.restart_leases(self.now)
        return shard

    def restart(self) -> None:
        """The process ends after its last commit, and another one takes over."""
        self.flush()
        self.begin()
        reached["restart with leases"] += bool(self.model.live(JobState.ACTIVE))
        self.shard = self.recovered()
        self.shard.dependencies.find_ended(self.shard.state_of)
        self.model.restart(self.shard.first_delivery())
        self.sessions = {
            name: one for name, one in self.sessions.items() if name in self.shard.clocks.holders
        }
        # What the journal tells of endings is told again; whoever keeps them does not mind.
        take_endings(self.shard)
        forget_revoked(self.shard)

    # Comparing.

    def compare(self) -> None:
        """Every job is where the model has it, every promise is kept."""
        self.tell()
        invariants.check(self.shard)
        self.place_freed()
        self.note_endings()
        for job in self.model.jobs.values():
            if job.state in LIVE:
                compare_live(self.shard, self.model, job)
            else:
                compare_ended(self.shard, self.kept[job.id], job)
        self.begin()
        compare_tenants(self.shard, self.model.fairness, reached)
        compare_counts(self.shard, self.model)
        live = self.model.live(*LIVE)
        assert self.shard.load.live_jobs == len(live)
        assert self.shard.load.payload_bytes == sum(job.bytes() for job in live)
        revoked = [(holder.worker, *rest) for holder, *rest in revoked_in(self.shard)]
        assert sorted(revoked) == sorted(self.expected_revokes)
        forget_revoked(self.shard)
        self.expected_revokes.clear()
        note_reached(reached, self.shard, self.model, self.kept)

    def run_retention(self) -> dict[str, int]:
        """The periodic task does what is due; returns how many jobs were changed."""
        counts, endings = self.retention.run_once(self.shard, self.now)
        self._keep(endings)
        return counts

    def note_endings(self) -> None:
        """Takes what ended to where it is kept."""
        endings = take_endings(self.shard)
        self.retention.add(endings)
        self._keep(endings)

    def _keep(self, endings: Sequence[Ending]) -> None:
        for ending in endings:
            for state, record in records_of(ending):
                self.kept[record.id] = (state, record)
            for job_id in aged_out(ending):
                self.kept[job_id] = (JobState.STALE, self.kept[job_id][1])

    def compare_recovered(self) -> None:
        """What the journal yields is what was lived through."""
        self.flush()
        assert self._image(self.recovered()) == self._image(self.shard)

    def _image(self, shard: Shard) -> dict[str, object]:
        return counting_at(image_of(shard), self.shard.age.at(self.now))
