"""What watchers are told of jobs that ended: made from what the engine leaves, not by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine.commands import FailItem, Pull, Push
from jobline_server.engine.decide.ack import decide_ack
from jobline_server.engine.decide.admin import decide_cancel, decide_delete_ended
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.settle import decide_fail
from jobline_server.engine.effects import endings_of
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.rules import NO_RULES, JobRules
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.values import EndReason, FailAction, JobError, JobOptions, JobState
from jobline_server.runtime.calls.pull_dedup import leases_of, runs_of
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.watch.event_endings import ended_runs
from jobline_server.runtime.watch.event_origin import EventOrigin
from jobline_server.wire.event_runs import EventRun

NAMES = JobOptions(name="send")
COMPLETED = EventKind.EVENT_KIND_COMPLETED
DEAD = EventKind.EVENT_KIND_DEAD
CANCELLED = EventKind.EVENT_KIND_CANCELLED


class Ends:
    """Jobs of a shard, and the events of those that ended since the last look."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.shard = runtime.core.slots[0].shard
        self.now = runtime.core.now()

    def push(self, jobs: int, *names: str) -> int:
        """Jobs of a lot; with names, single jobs."""
        push = Push("mail", NAMES, payloads=Payloads.of([b"x"] * jobs))
        if names:
            push = Push("mail", NAMES, JobColumns([b"x"] * jobs, [JobOptions(n) for n in names]))
        return decide_push(self.shard, self.now, push).first_id

    async def lease(self, worker: str = "w", max_jobs: int = 10) -> list[tuple[int, int]]:
        """Leases jobs to a worker."""
        await self._runtime.core.commits.commit_once()
        pull = Pull((("mail", 1),), max_jobs=max_jobs, worker=worker, accepts_runs=True)
        leased = await self._runtime.pulls.pull(pull)
        return list(leases_of(runs_of(leased)))

    def ack(self, leases: list[tuple[int, int]]) -> None:
        ids, deliveries = zip(*leases, strict=True)
        assert not decide_ack(self.shard, self.now, [*ids], [*deliveries], {})

    def events(self) -> list[EventRun]:
        origin = EventOrigin(0, 9)
        applied = self.shard.take_applied()
        return [
            run
            for one in applied
            for ending in endings_of(one.effects)
            for run in ended_runs(origin, ending)
        ]


@pytest.fixture
def ends(runtime: Runtime) -> Ends:
    return Ends(runtime)


def ids_of(run: EventRun) -> list[int]:
    pairs = zip(run.starts, run.counts, strict=True)
    return [job_id for start, count in pairs for job_id in range(start, start + count)]


async def test_members_of_a_lot_that_complete_are_one_run(ends: Ends) -> None:
    """With the worker and the delivery that they share; it was their first attempt."""
    first_id = ends.push(4)
    leases = await ends.lease()
    ends.events()
    ends.ack(leases)
    (run,) = ends.events()
    view = run.shared
    assert (view.kind, view.state, view.before) == (COMPLETED, JobState.COMPLETED, JobState.ACTIVE)
    assert (view.shard, view.offset, view.at_ms) == (0, 9, ends.now.wall_ms)
    assert (view.queue, view.name, view.worker) == ("mail", "send", "w")
    assert (view.delivery, view.attempt, view.reason) == (leases[0][1], 1, EndReason.NONE)
    assert (ids_of(run), run.total, len(run.starts)) == ([*range(first_id, first_id + 4)], 4, 1)


async def test_members_of_a_lot_that_are_cancelled_had_no_attempt(ends: Ends) -> None:
    first_id = ends.push(3)
    decide_cancel(ends.shard, ends.now, [first_id, first_id + 1])
    (run,) = ends.events()
    view = run.shared
    assert (view.kind, view.state, view.before) == (CANCELLED, JobState.CANCELLED, JobState.READY)
    assert (view.delivery, view.attempt, view.worker) == (0, 0, "")
    assert (view.reason, ids_of(run)) == (EndReason.CANCELLED, [first_id, first_id + 1])


async def test_single_jobs_have_a_name_a_delivery_and_an_attempt_each(ends: Ends) -> None:
    """Completed, the attempt counts that ended so; a worker of all stands once."""
    first_id = ends.push(2, "a", "b")
    leases = await ends.lease()
    ends.events()
    ends.ack(leases)
    (run,) = ends.events()
    columns = run.columns
    assert (run.shared.kind, ids_of(run)) == (COMPLETED, [first_id, first_id + 1])
    assert (run.shared.worker, list(columns.workers)) == ("w", [])
    assert list(columns.names) == ["a", "b"]
    assert list(columns.deliveries) == [delivery for _, delivery in leases]
    assert list(columns.attempts) == [1, 1]


async def test_single_jobs_of_several_workers_have_a_worker_each(ends: Ends) -> None:
    ends.push(2, "a", "b")
    leases = [*await ends.lease("v", 1), *await ends.lease("w", 1)]
    ends.events()
    ends.ack(leases)
    (run,) = ends.events()
    assert (run.shared.worker, list(run.columns.workers)) == ("", ["v", "w"])


async def test_a_job_that_died_says_why(ends: Ends) -> None:
    """The attempt that failed is counted once."""
    ends.push(1, "a")
    ((job_id, delivery),) = await ends.lease()
    ends.events()
    error = JobError("E", "no such host")
    decide_fail(ends.shard, ends.now, [FailItem(job_id, delivery, error, FailAction.DEAD)])
    (run,) = ends.events()
    assert (run.shared.kind, run.shared.state, run.shared.error) == (DEAD, JobState.DEAD, error)
    assert (run.shared.reason, list(run.columns.attempts)) == (EndReason.EXPLICIT_FAIL, [1])


async def test_changes_of_ended_jobs_are_told_by_their_facts_alone(ends: Ends) -> None:
    first_id = ends.push(2)
    ends.ack(await ends.lease())
    ends.events()
    decide_delete_ended(ends.shard, ends.now, "mail", JobState.COMPLETED, [(first_id, 2)])
    assert ends.events() == []


async def test_the_end_of_a_root_is_an_event_of_its_flow_too(ends: Ends) -> None:
    """Right behind its own, with the same fields; and none of another job that ended with it."""
    ties = [NO_TIES, Ties(is_flow_root=True)]
    rows = JobColumns([b"x"] * 2, [JobOptions("a"), JobOptions("root")], ties=ties)
    first_id = decide_push(ends.shard, ends.now, Push("mail", NAMES, rows)).first_id
    leases = await ends.lease()
    ends.events()
    ends.ack(leases)
    completed, of_flow = ends.events()
    assert (completed.shared.kind, ids_of(completed)) == (COMPLETED, [first_id, first_id + 1])
    assert of_flow.shared == replace(completed.shared, kind=EventKind.EVENT_KIND_FLOW_COMPLETED)
    assert ids_of(of_flow) == [first_id + 1]
    assert of_flow.columns == completed.columns.part(slice(1, 2))


async def test_a_root_that_does_not_complete_is_a_flow_that_failed(ends: Ends) -> None:
    rows = JobColumns([b"x"], [NAMES], ties=[Ties(is_flow_root=True)])
    first_id = decide_push(ends.shard, ends.now, Push("mail", NAMES, rows)).first_id
    decide_cancel(ends.shard, ends.now, [first_id])
    cancelled, failed = ends.events()
    assert cancelled.shared.kind == CANCELLED
    assert failed.shared == replace(cancelled.shared, kind=EventKind.EVENT_KIND_FLOW_FAILED)


@pytest.mark.parametrize("lot", [True, False])
@pytest.mark.parametrize(
    ("rules", "is_kept"),
    [
        (JobRules(webhook="https://x.example"), True),
        (JobRules(tags=("a",)), True),
        (JobRules(lifo=True, timeout_ms=5), False),
        (NO_RULES, False),
    ],
)
async def test_only_rules_that_webhooks_need_are_kept(
    runtime: Runtime, rules: JobRules, is_kept: bool, lot: bool
) -> None:
    ends = Ends(runtime)
    options = JobOptions(rules=rules)
    push = Push("mail", options, payloads=Payloads.of([b"x"] * 2))
    if not lot:
        push = Push("mail", options, JobColumns([b"x"] * 2, [options] * 2))
    decide_push(ends.shard, ends.now, push)
    ends.ack(await ends.lease())
    [run] = ends.events()
    found = {run.shared.rules, *run.columns.rules}
    assert found - {NO_RULES} == ({rules} if is_kept else set())
    assert bool(run.columns.rules) == (is_kept and not lot)
