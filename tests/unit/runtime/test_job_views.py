"""Jobs as operators see them, live and ended, and which of them a filter lets through."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from jobline_server.engine.commands import ExtendItem, FailItem, Leased
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.queue import Queue
from jobline_server.engine.records import JobRecord
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import (
    Attempt,
    AttemptOutcome,
    EndReason,
    JobError,
    JobOptions,
    JobState,
)
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.job_views import (
    ended_view,
    in_lot,
    last_error,
    live_view,
    matches,
    may_have_wanted,
    members_wanted,
)
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import JobFilter, JobView
from tests.pushed_payloads import payloads_of
from tests.unit.runtime.commits.test_commits import a_moment, a_pull
from tests.unit.runtime.queries.test_paging import pushed

OPTIONS = JobOptions(
    name="send", headers=(("to", "me"), ("via", "air")), rules=JobRules(tags=("eu", "night"))
)
OLD, ERROR = JobError("Old"), JobError("NoRoute", "no such host")
VIEW = JobView(
    7,
    "mail",
    JobState.DEAD,
    OPTIONS,
    b"x",
    pushed_ms=100,
    ended_ms=200,
    error=ERROR,
    reason=EndReason.TIMEOUT,
)


@pytest.mark.parametrize(
    ("condition", "passes", "fails"),
    [
        ("queue", ["mail"], ["mai", "print"]),
        ("tags", [frozenset({"eu"}), frozenset({"eu", "night"})], [frozenset({"eu", "day"})]),
        ("name", ["send"], ["", "sen"]),
        ("states", [{JobState.DEAD, JobState.READY}], [{JobState.READY}]),
        ("reasons", [{EndReason.TIMEOUT}], [{EndReason.NONE}]),
        ("pushed_after_ms", [0, 100], [101]),
        ("pushed_before_ms", [101], [100, 0]),
        ("ended_after_ms", [0, 200], [201]),
        ("ended_before_ms", [201], [200, 0]),
        ("headers", [[("to", "me")], OPTIONS.headers], [[("to", "you")], [("of", "")]]),
        ("error_type", ["NoRoute"], ["No", "noroute"]),
        ("error_contains", ["such", "no such host"], ["Such", "such  "]),
    ],
)
def test_each_condition_is_looked_at(condition: str, passes: list[Any], fails: list[Any]) -> None:
    """Times after include their bound, times before do not."""
    for value, expected in [(one, True) for one in passes] + [(one, False) for one in fails]:
        assert matches(VIEW, JobFilter(**{condition: value})) == expected, value


def test_every_condition_that_is_set_must_hold() -> None:
    wanted = JobFilter(queue="mail", error_type="NoRoute", states=frozenset({JobState.DEAD}))
    assert matches(VIEW, JobFilter())
    assert matches(VIEW, wanted)
    for other in (replace(wanted, queue="print"), replace(wanted, error_type="E")):
        assert not matches(VIEW, other)


def test_a_job_without_an_error_has_none_of_any_kind() -> None:
    well = replace(VIEW, error=None)
    assert not matches(well, JobFilter(error_type="NoRoute"))
    assert not matches(well, JobFilter(error_contains="such"))


def an_attempt(outcome: AttemptOutcome, error: JobError | None = None) -> Attempt:
    return Attempt(1, 1, "w", 0, 0, outcome, error)


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ((), None),
        ((an_attempt(AttemptOutcome.STALLED),), None),
        ((an_attempt(AttemptOutcome.FAILED, OLD), an_attempt(AttemptOutcome.FAILED, ERROR)), ERROR),
        ((an_attempt(AttemptOutcome.FAILED, ERROR), an_attempt(AttemptOutcome.RELEASED)), ERROR),
    ],
    ids=["none", "stalled", "failed twice", "failed, then released"],
)
def test_the_last_error_is_that_of_the_last_attempt_that_failed(
    history: tuple[Attempt, ...], expected: JobError | None
) -> None:
    job = Job(7, Queue("mail", 1, 0), OPTIONS, b"x", 0)
    job.writable_details().history = history
    assert last_error(job) == expected


async def leased(runtime: Runtime) -> tuple[int, int]:
    """Leases one job to `w`."""
    found: Leased = await a_pull(runtime, max_jobs=1)
    ((job_id, delivery),) = [(job.id, job.delivery) for job in found.jobs] or [
        (run.first_id, run.delivery) for run in found.runs
    ]
    return job_id, delivery


async def settled(runtime: Runtime, call: Any) -> None:
    task = asyncio.ensure_future(call)
    await a_moment()
    await runtime.core.commits.commit_once()
    await task


async def test_a_single_job_is_shown_with_all_that_happened_to_it(runtime: Runtime) -> None:
    clock = runtime.core.clock
    assert isinstance(clock, ManualClock)
    job_id = await pushed(runtime, b"abc", options=OPTIONS)
    _, delivery = await leased(runtime)
    await settled(runtime, runtime.settle_calls.fail([FailItem(job_id, delivery, ERROR)]))
    job = runtime.core.slots[0].shard.jobs.find(job_id)
    assert job is not None
    waits = live_view(job, clock)
    assert (waits.state, waits.run_at_ms > clock.wall_ms) == (JobState.SCHEDULED, True)
    assert (waits.attempts, waits.error, waits.worker) == (1, ERROR, "")
    assert [attempt.error for attempt in waits.history] == [ERROR]
    assert (waits.lease_until_ms, waits.payload, waits.payload_bytes) == (0, b"abc", 3)

    clock.advance(waits.run_at_ms - clock.wall_ms)
    runtime.timer_loop.run_due()
    await runtime.core.commits.commit_once()
    _, again = await leased(runtime)
    item = ExtendItem(job_id, again, 60_000, 0.5, "half", b"at 7")
    await settled(runtime, runtime.settle_calls.extend([item]))
    decide_cancel(runtime.core.slots[0].shard, runtime.core.now(), [job_id])
    active = live_view(job, clock)
    assert (active.state, active.worker, active.delivery) == (JobState.ACTIVE, "w", again)
    assert active.lease_until_ms == clock.wall_ms + 60_000
    assert (active.progress, active.progress_message) == (0.5, "half")
    assert (active.worker_checkpoint, active.cancel_requested) == (b"at 7", True)


async def test_a_member_of_a_lot_is_shown_by_where_it_stands(runtime: Runtime) -> None:
    """Leased, settled, and waiting."""
    first_id = await pushed(runtime, b"1", b"22", b"333", options=OPTIONS)
    (run,) = (await a_pull(runtime, max_jobs=2)).runs
    await settled(runtime, runtime.settle_calls.ack([first_id], [run.delivery], {}))
    lot = runtime.core.slots[0].shard.lots.find(first_id)
    assert lot is not None
    views = [in_lot(lot, index, runtime.core.clock) for index in range(3)]
    _, active, waits = views
    assert views[0] is None
    assert active is not None
    assert waits is not None
    assert (active.id, active.state, active.payload) == (first_id + 1, JobState.ACTIVE, b"22")
    assert (active.worker, active.delivery) == ("w", run.delivery)
    assert (waits.state, waits.worker, waits.delivery) == (JobState.READY, "", 0)
    assert (waits.lease_until_ms, waits.payload_bytes, waits.options) == (0, 3, OPTIONS)


async def test_a_lease_that_was_extended_alone_shows_its_own_end(runtime: Runtime) -> None:
    clock = runtime.core.clock
    assert isinstance(clock, ManualClock)
    first_id = await pushed(runtime, b"1", b"2")
    (run,) = (await a_pull(runtime)).runs
    item = ExtendItem(first_id + 1, run.delivery, 60_000, None, None, None)
    await runtime.settle_calls.extend([item])
    ends = [
        (await runtime.jobs.get_job(job_id)).lease_until_ms for job_id in (first_id, first_id + 1)
    ]
    assert ends == [clock.wall_ms + 30_000, clock.wall_ms + 60_000]


@pytest.mark.parametrize("state", [JobState.COMPLETED, JobState.STALE])
def test_an_ended_job_is_shown_from_its_record(state: JobState) -> None:
    """A stale one says in which state it ended."""
    record = JobRecord(7, "mail", OPTIONS, b"abc", 100, "key", attempts=2, worker="w")
    record.ended_ms, record.result, record.error = 200, b"done", ERROR
    stale_from = JobState.DEAD if state is JobState.STALE else None
    view = ended_view(state, record, stale_from)
    assert (view.id, view.queue, view.state, view.stale_from) == (7, "mail", state, stale_from)
    assert (view.pushed_ms, view.ended_ms, view.job_key) == (100, 200, "key")
    assert (view.attempts, view.worker, view.result, view.error) == (2, "w", b"done", ERROR)
    assert (view.payload, view.payload_bytes) == (b"abc", 3)


def a_lot(payloads: Payloads) -> Lot:
    return Lot(100, Queue("mail", 1, 0), OPTIONS, payloads, pushed_ms=100, run_at_ms=0)


def test_headers_that_members_have_each_with_its_own_value_rule_out_no_lot() -> None:
    """Others do, and so does anything that all members share."""
    shared = a_lot(Payloads.of([b"1", b"2"]))
    own = a_lot(payloads_of([b"1", b"2"], {"to": ["you", ""]}))
    you, air, sea = (
        JobFilter(headers=(header,)) for header in (("to", "you"), ("via", "air"), ("via", "sea"))
    )
    assert [may_have_wanted(shared, one) for one in (you, air, sea)] == [False, True, False]
    assert [may_have_wanted(own, one) for one in (you, air, sea)] == [True, True, False]
    assert not may_have_wanted(own, replace(you, queue="print"))


def test_members_are_told_apart_by_their_own_headers() -> None:
    """One without a value of its own has the lot's; payloads that a checkpoint dropped are gone."""
    payloads = payloads_of([b"x"] * 4, {"to": ["you", "", "you", "you"]})
    lot, you, me = a_lot(payloads), *(JobFilter(headers=(("to", to),)) for to in ("you", "me"))
    assert list(members_wanted(lot, range(4), you)) == [0, 2, 3]
    assert list(members_wanted(lot, range(1, 3), you)) == [2]
    assert list(members_wanted(lot, range(4), me)) == [1]
    assert list(members_wanted(lot, range(4), JobFilter())) == [0, 1, 2, 3]
    assert list(members_wanted(a_lot(payloads.rest(1)), range(4), you)) == [2, 3]
