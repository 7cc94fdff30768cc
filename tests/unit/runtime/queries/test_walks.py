"""Walks over live jobs: each that passes a filter once, in slices."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobline_server.engine.commands import Push
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.shard import Shard
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    AckLevel,
    Attempt,
    AttemptOutcome,
    EndReason,
    JobError,
    JobOptions,
    JobState,
)
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.queries import walks
from jobline_server.runtime.queries.walks import (
    asks_for_ended,
    id_slices,
    is_wanted,
    live_slices,
    member_runs,
    slots_of,
)
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import JobFilter
from tests.pushed_rows import NewJob, rows_of
from tests.unit.runtime.commits.test_commits import a_pull
from tests.unit.runtime.conftest import opened
from tests.unit.runtime.queries.test_ended_lists import completed
from tests.unit.runtime.queries.test_paging import all_pages, pushed

ANY = JobFilter()
ACTIVE, READY = JobState.ACTIVE, JobState.READY
MINE = JobOptions(name="send", headers=(("to", "me"),))


def of_states(*states: JobState) -> JobFilter:
    return JobFilter(states=frozenset(states))


def shard_of(runtime: Runtime) -> Shard:
    return runtime.core.slots[0].shard


async def live(runtime: Runtime, wanted: JobFilter = ANY) -> dict[int, JobState]:
    """All that a walk over live jobs yields; no job comes twice."""
    found: dict[int, JobState] = {}
    async for part in live_slices(shard_of(runtime), wanted):
        assert not found.keys() & part.keys()
        found.update(part)
    return found


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (ANY, False),
        (of_states(JobState.DEAD), False),
        (JobFilter(reasons=frozenset({EndReason.NONE})), False),
        (JobFilter(reasons=frozenset({EndReason.NONE, EndReason.TIMEOUT})), True),
        (JobFilter(ended_after_ms=0), True),
        (JobFilter(ended_before_ms=0), True),
    ],
)
async def test_what_only_ended_jobs_meet_needs_no_walk_over_live_ones(
    runtime: Runtime, wanted: JobFilter, *, expected: bool
) -> None:
    """A live job has no reason for its end, which a filter may ask for."""
    job_id = await pushed(runtime, b"x")
    assert asks_for_ended(wanted) == expected
    if expected:
        assert await live(runtime, wanted) == {}
    else:
        assert set(await live(runtime, wanted)) <= {job_id}


async def test_a_filter_of_a_queue_is_of_one_shard(tmp_path: Path) -> None:
    """Whether the queue exists or not."""
    async with opened(tmp_path, ManualClock(), shards=3) as runtime:
        core = runtime.core
        assert slots_of(core, ANY) == list(core.slots)
        assert slots_of(core, JobFilter(queue="mail")) == [core.slots.of_queue("mail")]


async def test_a_walk_over_nothing_ends(runtime: Runtime) -> None:
    assert await live(runtime) == await live(runtime, JobFilter(queue="none")) == {}


async def test_live_jobs_are_found_with_their_states(runtime: Runtime) -> None:
    """Members of lots and single jobs; those that have ended are not live."""
    await completed(runtime, b"done", b"done")
    first_id = await pushed(runtime, b"1", b"2", b"3", options=MINE)
    await a_pull(runtime, max_jobs=2)
    single = await pushed(runtime, b"4")
    members = {first_id: ACTIVE, first_id + 1: ACTIVE, first_id + 2: READY}
    assert await live(runtime) == members | {single: READY}
    assert await live(runtime, of_states(READY)) == {first_id + 2: READY, single: READY}
    assert await live(runtime, JobFilter(headers=MINE.headers)) == members
    assert await live(runtime, JobFilter(name="none")) == {}
    assert await live(runtime, JobFilter(error_type="E")) == {}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (JobFilter(states=frozenset({JobState.ACTIVE})), [b"1", b"2"]),
        (JobFilter(states=frozenset({JobState.READY})), [b"3", b"4"]),
        (JobFilter(states=frozenset({JobState.READY}), name="send"), [b"4"]),
        (JobFilter(headers=(("to", "me"),)), [b"4"]),
        (JobFilter(queue="print"), []),
        (JobFilter(error_type="E"), []),
    ],
)
async def test_members_of_a_lot_are_found_by_where_they_stand(
    runtime: Runtime, wanted: JobFilter, expected: list[bytes]
) -> None:
    await pushed(runtime, b"1", b"2")
    await a_pull(runtime)
    await pushed(runtime, b"3")
    await pushed(runtime, b"4", options=JobOptions(name="send", headers=(("to", "me"),)))
    (page,) = await all_pages(runtime, wanted)
    assert [view.payload for view in page] == expected


@pytest.mark.parametrize(
    ("wanted", "after", "expected"),
    [
        (ANY, 0, [(0, 4), (4, 8), (8, 10)]),
        (ANY, 102, [(3, 7), (7, 10)]),
        (ANY, 109, []),
        (of_states(ACTIVE), 0, [(0, 3)]),
        (of_states(READY), 0, [(3, 7), (7, 10)]),
        (of_states(READY), 104, [(5, 9), (9, 10)]),
        (of_states(ACTIVE, READY), 0, [(0, 4), (4, 8), (8, 10)]),
        (of_states(JobState.SCHEDULED), 0, []),
        (JobFilter(error_contains="x"), 0, []),
    ],
)
async def test_members_that_may_pass_are_before_the_cursor_or_behind_it(
    runtime: Runtime,
    monkeypatch: pytest.MonkeyPatch,
    wanted: JobFilter,
    after: int,
    expected: list[tuple[int, int]],
) -> None:
    """Three of ten were handed out; the others wait. Ids are those of a lot that begins at 100."""
    monkeypatch.setattr(walks, "RUN_JOBS_MAX", 4)
    first_id = await pushed(runtime, *[b"x"] * 10)
    await a_pull(runtime, max_jobs=3)
    lot = shard_of(runtime).lots.find(first_id)
    assert lot is not None
    runs = member_runs(lot, wanted, after - 100 + first_id if after else 0)
    assert [(run.start, run.stop) for run in runs] == expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (ANY, True),
        (of_states(READY), True),
        (of_states(ACTIVE), False),
        (JobFilter(error_type="E"), True),
        (JobFilter(error_type="F"), False),
        (JobFilter(error_contains="host"), True),
        (JobFilter(error_contains="disk"), False),
        (JobFilter(error_type="E", error_contains="disk"), False),
    ],
)
async def test_a_single_job_is_wanted_for_its_last_error(
    runtime: Runtime, wanted: JobFilter, *, expected: bool
) -> None:
    """One that never failed meets no condition on errors."""
    with_error, without = [
        shard_of(runtime).jobs.find(await pushed(runtime, b"x")) for _ in range(2)
    ]
    assert with_error is not None
    assert without is not None
    error = JobError("E", "no such host")
    failed = Attempt(1, 1, "w", 0, 0, AttemptOutcome.FAILED, error)
    with_error.writable_details().history = (failed,)
    assert is_wanted(with_error, wanted) == expected
    asks_for_errors = bool(wanted.error_type or wanted.error_contains)
    assert is_wanted(without, wanted) == (expected and not asks_for_errors)


@pytest.mark.parametrize(("each", "most"), [(1, 10), (20, 40)], ids=["lots of one", "long lots"])
async def test_a_slice_has_fewer_lots_than_jobs(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, each: int, most: int
) -> None:
    """A thousand jobs that are lots, of a hundred thousand queues, were cancelled in 20 ms."""
    monkeypatch.setattr(walks, "SLICE_JOBS", 40)
    monkeypatch.setattr(walks, "PART_JOBS", 3)
    monkeypatch.setattr(walks, "RUN_JOBS_MAX", 20)
    for _ in range(100 // each):
        payloads = Payloads.of([b"x"] * each)
        await runtime.pushes.push(
            Push("mail", DEFAULT_OPTIONS, payloads=payloads, level=AckLevel.BUFFERED)
        )
    sizes = [len(part) async for part in live_slices(shard_of(runtime), ANY)]
    assert (sum(sizes), max(sizes)) == (100, most)


async def test_jobs_pushed_after_a_walk_began_are_not_its_business(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it says of each job what it is when its slice is made."""
    monkeypatch.setattr(walks, "SLICE_JOBS", 2)
    rows = JobColumns([b"x"] * 4, [DEFAULT_OPTIONS] * 4)
    push = Push("mail", DEFAULT_OPTIONS, rows=rows, level=AckLevel.BUFFERED)
    first_id = (await runtime.pushes.push(push)).first_id
    await runtime.core.commits.commit_once()
    walk = live_slices(shard_of(runtime), ANY)
    assert dict(await anext(walk)) == {first_id: READY, first_id + 1: READY}
    await runtime.pushes.push(push)
    await a_pull(runtime)
    rest = [dict(part) async for part in walk]
    assert rest == [{first_id + 2: ACTIVE, first_id + 3: ACTIVE}, {}]


async def test_what_a_job_waits_for_counts_too(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it ends it is taken off the list of each: a slice of a thousand took a second."""
    monkeypatch.setattr(walks, "SLICE_JOBS", 20)
    parents = Payloads.of([b"x"] * 40)
    parents_push = Push("steps", DEFAULT_OPTIONS, payloads=parents, level=AckLevel.BUFFERED)
    first_id = (await runtime.pushes.push(parents_push)).first_id
    ties = Ties(parents=tuple(range(first_id, first_id + 40)))
    rows = rows_of([NewJob(b"x", DEFAULT_OPTIONS, ties=ties)] * 8)
    await runtime.pushes.push(Push("mail", DEFAULT_OPTIONS, rows=rows, level=AckLevel.BUFFERED))
    shard = runtime.core.slots.of_queue("mail").shard
    wanted = JobFilter(queue="mail")
    sizes = [len(part) async for part in live_slices(shard, wanted)]
    assert (sum(sizes), max(sizes)) == (8, 2)


async def test_jobs_named_by_their_ids_come_in_slices_by_what_they_cost(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of a filter: a thousand ids of jobs that wait for a million others took a second."""
    monkeypatch.setattr(walks, "SLICE_JOBS", 20)
    parents = Payloads.of([b"x"] * 40)
    parents_push = Push("steps", DEFAULT_OPTIONS, payloads=parents, level=AckLevel.BUFFERED)
    first_id = (await runtime.pushes.push(parents_push)).first_id
    ties = Ties(parents=tuple(range(first_id, first_id + 40)))
    rows = rows_of([NewJob(b"x", DEFAULT_OPTIONS, ties=ties)] * 8)
    pushed = await runtime.pushes.push(
        Push("mail", DEFAULT_OPTIONS, rows=rows, level=AckLevel.BUFFERED)
    )
    ids = [*range(first_id, first_id + 40), *range(pushed.first_id, pushed.first_id + 8), 1 << 52]
    slices = list(id_slices(runtime.core.slots, ids))
    assert [one for part in slices for one in part] == ids
    # A lot counts once, and a job that is nowhere as one.
    assert [len(part) for part in slices] == [16, 20, 6, 2, 2, 2, 1]
