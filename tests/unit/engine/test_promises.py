"""Promises as properties, under their numbers: what must hold whatever is done in whichever order.

Each looks at what went in and out, and at nothing inside. G6 and G7 have theirs in
`test_unique_properties.py`, G11 in `test_group_order.py`, G14 in `test_allow.py`,
`test_limiter_changes.py` and `test_group_rates.py`, G23 in `test_choose_fairly.py`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from jobline_server.engine.commands import ReleaseItem
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.decide.dependencies import release_dependents
from jobline_server.engine.values import DEFAULT_OPTIONS, FailAction, JobState, Now, SettleOutcome
from tests.pushed_rows import NewJob
from tests.unit.engine.dependents import child, is_free
from tests.unit.engine.world import World, leases_of

HOUR_MS = 3_600_000
LEASE_MS = 30_000
PATIENT = replace(DEFAULT_OPTIONS, max_attempts=0, max_stalls=1_000)
LIVE = (JobState.SCHEDULED, JobState.BLOCKED, JobState.READY, JobState.ACTIVE)
WAYS = [
    "push",
    "lot",
    "child",
    "lease",
    "lease",
    "ack",
    "ack",
    "old",
    "fail",
    "die",
    "release",
    "cancel",
    "wait",
    "lose",
    "jump",
]
STEPS = st.lists(st.tuples(st.sampled_from(WAYS), st.integers(0, 30)), min_size=30, max_size=80)
histories = given(STEPS)
many = settings(max_examples=150, deadline=None)


class History:
    """A world, and what went into it and came out of it."""

    def __init__(self) -> None:
        self.world = World()
        self.pushed: dict[int, int] = {}
        """The jobs, each with its priority."""
        self.parents: dict[int, tuple[int, ...]] = {}
        self.handed_out: list[tuple[int, int, int]] = []
        """(id, delivery, monotonic time) in order."""
        self.completed: list[int] = []
        self.ended: dict[int, JobState] = {}

    def run(self, steps: list[tuple[str, int]]) -> None:
        for what, pick in steps:
            self.step(what, pick)

    def step(self, what: str, pick: int) -> None:
        if what in ("push", "lot", "child"):
            self._push(what, pick)
        elif what == "lease":
            self.lease(1 + pick % 4)
        elif what == "cancel":
            decide_cancel(self.world.shard, self.world.now, [*self.pushed][pick : pick + 1])
        elif what in ("wait", "lose"):
            self.world.tick(pick * 100 if what == "wait" else LEASE_MS + 1_000)
        elif what == "jump":
            now = self.world.now
            self.world.now = Now(now.wall_ms + (-1) ** pick * HOUR_MS, now.mono_ms)
            self.world.tick()
        else:
            self._settle(what, pick)
        while release_dependents(self.world.shard, self.world.now, 100):
            pass
        self.world.commit()
        self.ended |= {job_id: state for job_id, (state, _) in self.world.ended().items()}

    def _push(self, what: str, pick: int) -> None:
        world, priority = self.world, pick % 3
        options = replace(PATIENT, priority=priority)
        parents = tuple(
            job_id for job_id in [*self.pushed][-1 - pick % 2 :] if job_id not in self.ended
        )
        if what == "lot":
            new = world.push(payloads=[b"x"] * 3, options=options)
        elif what == "child" and parents:
            job = child(*parents)
            rules = replace(options, rules=job.options.rules)
            new = world.push(jobs=[job._replace(options=rules)])
            self.parents[new.first_id] = parents
        else:
            run_at_ms = world.now.wall_ms + 1_000 if pick > 20 else 0
            new = world.push(jobs=[NewJob(b"x", options, run_at_ms=run_at_ms)])
        ids = range(new.first_id, new.first_id + new.count)
        assert not set(ids) & set(self.pushed), "G10: an id is given once"
        self.pushed |= dict.fromkeys(ids, priority)

    def lease(self, most: int) -> list[tuple[int, int]]:
        if "q" not in self.world.shard.queues:
            return []
        leases = leases_of(self.world.lease(most))
        self.handed_out += [(*lease, self.world.now.mono_ms) for lease in leases]
        return leases

    def valid(self) -> list[tuple[int, int]]:
        """The leases that count: those of ACTIVE jobs, the newest of each."""
        newest = {job_id: delivery for job_id, delivery, _ in self.handed_out}
        active = JobState.ACTIVE
        return [(one, newest[one]) for one in newest if self.world.state(one) is active]

    def _settle(self, what: str, pick: int) -> None:
        leases = [(job_id, delivery) for job_id, delivery, _ in self.handed_out]
        if what != "old":
            leases = self.valid()
        if not leases:
            return
        job_id, delivery = leases[pick % len(leases)]
        if what in ("ack", "old"):
            self._ack([*dict.fromkeys(leases[pick % len(leases) :][: 1 + pick % 4])])
        elif what == "release":
            self.world.release(ReleaseItem(job_id, delivery))
        else:
            self.world.fail(
                job_id, delivery, then=FailAction.DEAD if what == "die" else FailAction.RETRY
            )

    def _ack(self, leases: list[tuple[int, int]]) -> None:
        not_done = {index for index, _ in self.world.ack(leases)}
        done = [job_id for index, (job_id, _) in enumerate(leases) if index not in not_done]
        self.completed += done


@histories
@many
def test_g8_only_the_newest_lease_of_a_job_counts(steps):
    """Whoever has an older one changes nothing with it, and deliveries only grow."""
    history = History()
    history.run(steps)
    seen: dict[int, int] = {}
    for job_id, delivery, _ in history.handed_out:
        assert delivery > seen.get(job_id, 0)
        seen[job_id] = delivery
    valid = set(history.valid())
    old = [
        (one, delivery) for one, delivery, _ in history.handed_out if (one, delivery) not in valid
    ]
    before = [history.world.state(job_id) for job_id, _ in old]
    outcomes = dict(history.world.ack(old))
    assert set(outcomes) == set(range(len(old)))
    assert SettleOutcome.DONE not in outcomes.values()
    assert [history.world.state(job_id) for job_id, _ in old] == before


@histories
@many
def test_g9_a_job_completes_once(steps):
    """However often its leases are acked, and by whom."""
    history = History()
    history.run(steps)
    assert all(count == 1 for count in Counter(history.completed).values())
    for job_id in history.completed:
        assert history.ended[job_id] is JobState.COMPLETED


@histories
@many
def test_g10_no_jump_of_the_wall_clock_ends_a_lease(steps):
    """A lease that nobody settled ends after its time on a clock that does not jump."""
    history = History()
    held: dict[int, int] = {}
    for what, pick in steps:
        before = len(history.handed_out)
        history.step(what, pick)
        if what == "jump":
            # No lease that had time left was lost by the jump.
            now = history.world.now.mono_ms
            for job_id, since in held.items():
                if now - since < LEASE_MS:
                    assert history.world.state(job_id) is JobState.ACTIVE
        held |= {job_id: since for job_id, _, since in history.handed_out[before:]}
        active = {job_id for job_id, _ in history.valid()}
        held = {job_id: since for job_id, since in held.items() if job_id in active}


@histories
@many
def test_g12_no_job_of_higher_priority_was_ready(steps):
    """Whenever a job is handed out."""
    history = History()
    for what, pick in steps:
        before = len(history.handed_out)
        history.step(what, pick)
        lowest = [history.pushed[job_id] for job_id, *_ in history.handed_out[before:]]
        assert lowest == sorted(lowest, reverse=True)
        if lowest:
            ready = [one for one in history.pushed if history.world.state(one) is JobState.READY]
            assert all(history.pushed[job_id] <= lowest[-1] for job_id in ready)


@histories
@many
def test_g13_a_job_starts_after_its_parents_have_completed(steps):
    """And one whose parents are over is not BLOCKED; drained, nothing is held of any."""
    history = History()
    for what, pick in steps:
        before = len(history.handed_out)
        history.step(what, pick)
        for job_id, *_ in history.handed_out[before:]:
            for parent in history.parents.get(job_id, ()):
                assert history.ended[parent] is JobState.COMPLETED
        for job_id, parents in history.parents.items():
            if history.world.state(job_id) is JobState.BLOCKED:
                assert any(parent not in history.ended for parent in parents)
    _drain(history)
    assert is_free(history.world)


@histories
@many
def test_g19_every_accepted_job_is_in_one_state(steps):
    """It is live, or it has ended; and the queue counts what there is."""
    history = History()
    for what, pick in steps:
        history.step(what, pick)
        states = {one: history.world.state(one) for one in history.pushed}
        for job_id, state in states.items():
            assert (state in LIVE) != (job_id in history.ended)
        if "q" in history.world.shard.queues:
            counts, found = history.world.queue().counts, Counter(states.values())
            assert [counts[state] for state in LIVE] == [found[state] for state in LIVE]
    _drain(history)
    assert set(history.ended) == set(history.pushed)


def _drain(history: History) -> None:
    """A worker does all that is left."""
    for _ in range(100):
        history.step("wait", 0)
        history.step("lose", 0)
        for lease in history.lease(100):
            history.world.ack([lease])
        history.step("wait", 0)
        if not history.world.shard.load.live_jobs:
            return
        # What a jump of the wall clock has put off is due then.
        history.world.advance(HOUR_MS)
    raise AssertionError("it does not drain")
