"""Random histories: the engine beside the reference model, every outcome and every order equal.

A history pushes, leases, settles, cancels, waits, disconnects and restarts in any order. After each
step all invariants hold and every job is where the model has it; at its end the journal yields the
same shard again.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from jobline_server.engine import limits
from jobline_server.engine.commands import Push
from jobline_server.engine.load import Load
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.producers import Call
from jobline_server.engine.schedule import Missed, Overlap
from jobline_server.engine.values import QueueSettings
from tests.examples import EXAMPLES
from tests.pushed_rows import NewJob, rows_of
from tests.unit.engine.batch_rules import BatchRules
from tests.unit.engine.consumer_rules import ConsumerRules
from tests.unit.engine.dependency_rules import DependencyRules
from tests.unit.engine.flow_rules import FlowRules
from tests.unit.engine.group_rate_rules import GroupRateRules
from tests.unit.engine.histories import (
    DELAYS,
    KIND,
    LEVELS,
    MOMENTS,
    OPTIONS,
    PAYLOADS,
    QUEUE,
    ROWS,
    UNIQUE_ROWS,
)
from tests.unit.engine.limiter_rules import LimiterRules
from tests.unit.engine.operator_rules import OperatorRules
from tests.unit.engine.rare import RARE
from tests.unit.engine.reference_schedules import EVERY_MS
from tests.unit.engine.retention_rules import RetentionRules
from tests.unit.engine.schedule_rules import NAME, ScheduleRules
from tests.unit.engine.side_by_side import reached
from tests.unit.engine.sticky_rules import StickyRules

ROOM_FOR_ONE = QueueSettings(max_waiting=1)


class EngineBesideModel(
    ConsumerRules,
    OperatorRules,
    GroupRateRules,
    LimiterRules,
    StickyRules,
    DependencyRules,
    ScheduleRules,
    BatchRules,
    FlowRules,
    RetentionRules,
):
    """Each rule does the same to both and compares the answers."""

    def __init__(self) -> None:
        super().__init__()
        self.pushes: list[Push] = []

    @rule(name=NAME, queue=QUEUE, is_full=st.booleans())
    def schedule_meets_its_own_job(self, name, queue, is_full):
        """What takes several steps in a row: it replaces a job that runs, or finds no room."""
        queue = self.schedules[name].queue if name in self.schedules else queue
        overlap = Overlap.ALLOW if is_full else Overlap.REPLACE
        self.put_schedule(name, queue, 0, overlap, Missed.SKIP, 0)
        self.run_schedules(EVERY_MS)
        if is_full:
            self._change_settings(queue, ROOM_FOR_ONE)
        else:
            self._lease(queue, "w1", 20, 1_000, None, 0, 0)
        self.run_schedules(EVERY_MS)

    # Producers.

    @initialize()
    def something_is_there(self):
        """A history that begins with nothing spends half its steps on nothing."""
        for queue in ("a", "b"):
            rows = rows_of(NewJob(b"x", OPTIONS[kind]) for kind in range(2))
            self.both.push(Push(queue, OPTIONS[0], rows, Payloads.of([b"x"] * 3)))

    @rule(
        queue=QUEUE,
        rows=ROWS,
        payloads=PAYLOADS,
        kind=KIND,
        delay=DELAYS,
        level=LEVELS,
        atomic=st.booleans(),
        once=st.sampled_from(["", "request id", "call", "last call"]),
    )
    def push(self, queue, rows, payloads, kind, delay, level, atomic, once):
        jobs = [
            NewJob(
                payload, OPTIONS[own], key, self.both.now.wall_ms + own_delay if own_delay else 0
            )
            for payload, own, key, own_delay in rows
        ]
        run_at_ms = self.both.now.wall_ms + delay if delay else 0
        number = len(self.pushes) + 1
        request_id = b"%d" % number if once == "request id" else b""
        # One that no other waits beside says that all before it are over.
        below = number if once == "last call" else 0
        calls = (Call(b"%16d" % (number % 2), number, below, 0),) if "call" in once else ()
        rows_and_payloads = rows_of(jobs), payloads
        command = Push(
            queue,
            OPTIONS[kind],
            *rows_and_payloads,
            run_at_ms,
            level,
            atomic,
            request_id,
            calls=calls,
        )
        if once:
            self.pushes.append(command)
        self.both.push(command)

    @rule(
        queue=QUEUE,
        rows=UNIQUE_ROWS,
        level=LEVELS,
        atomic=st.booleans(),
        once=st.sampled_from(["", "", "request id", "call"]),
        is_held=st.booleans(),
    )
    def push_unique(self, queue, rows, level, atomic, once, is_held):
        """Jobs with unique keys, of every mode; while those before them run, if `is_held`."""
        if is_held:
            self.lease_everything("w1")
        now_ms = self.both.now.wall_ms
        number = len(self.pushes) + 1
        request_id = b"%d" % number if once == "request id" else b""
        jobs = [
            NewJob(
                payload,
                own,
                "" if request_id else key,
                now_ms + own_delay if own_delay else 0,
                None,
                ties,
            )
            for payload, own, key, own_delay, ties in rows
        ]
        calls = (Call(b"%16d" % (number % 2), number, 0, 0),) if once == "call" else ()
        command = Push(
            queue,
            OPTIONS[0],
            rows_of(jobs),
            level=level,
            atomic=atomic,
            request_id=request_id,
            calls=calls,
        )
        if once:
            self.pushes.append(command)
        self.both.push(command)

    @precondition(lambda self: self.pushes)
    @rule(pick=st.integers(0, 20))
    def push_again(self, pick):
        """A reply was lost; the very same call comes once more."""
        self.both.push(self.pushes[pick % len(self.pushes)])

    # Time and the disk.

    @rule(ms=MOMENTS)
    def time_goes_on(self, ms):
        self.both.wait(ms)

    @precondition(lambda self: len(self.both.journal) > 10)
    @rule()
    def restart(self):
        self.both.restart()

    @invariant()
    def both_are_equal(self):
        self.both.compare()

    def teardown(self):
        self.both.compare_recovered()
        # Nothing of it is left in the load of the server once it is not served any more.
        load = self.both.shard.load
        self.both.shard.leave_load()
        assert load == Load()
        limiters = load.limiters.by_name.values()
        assert not [limiter for limiter in limiters if limiter.active or limiter.line]


# What takes hours and hundreds of jobs otherwise.
SMALL_LIMITS = {
    "LOG_LINES_MAX": 5,
    "STALE_AFTER_MS_DEFAULT": 30_000,
    "KEEP_NEWEST": 2,
    "DELETE_AFTER_MS_DEFAULT": 5_000,
}
ROUNDS_MAX = 80
PROFILE = settings(
    max_examples=EXAMPLES or 45,
    stateful_step_count=70,
    deadline=None,
    database=None,
    report_multiple_bugs=False,
    # Explaining a failure traces every line, which takes longer than finding it.
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.timeout(0 if EXAMPLES else 1_800)
def test_engine_does_what_the_reference_model_does(monkeypatch: pytest.MonkeyPatch):
    """Histories agree, and between them they come to everything that is rare; what the first rounds
    missed, others find. They are the same in each run of this file alone: Hypothesis also draws the
    constants of all modules that are loaded."""
    for name, value in SMALL_LIMITS.items():
        monkeypatch.setattr(limits, name, value)
    reached.clear()
    missing = sorted(RARE)
    for number in range(ROUNDS_MAX):
        if missing or number == 1:
            histories = EngineBesideModel if EXAMPLES else seed(number)(EngineBesideModel)
            run_state_machine_as_test(histories, settings=PROFILE)
            missing = sorted(one for one in RARE if not reached[one])
    assert not missing, f"no history came to {missing}"
