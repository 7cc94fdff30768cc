"""Runs of jobs say of each job what a view of it alone says."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from jobline_server.engine.commands import ExtendItem, Push
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobOptions, JobState
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.queries.job_runs import JobRun, is_run_decided
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import NO_AUDIT, JobFilter, JobView, Selection
from tests.pushed_payloads import payloads_of
from tests.unit.runtime.commits.test_commits import a_pull
from tests.unit.runtime.ended.test_many_ids import committed

ANY = JobFilter()
UNEVEN = [b"x" * size for size in range(12)]
EVEN = [b"%02d" % number for number in range(12)]


def jobs_of(run: JobRun, *, with_payloads: bool) -> Iterator[JobView]:
    """The views of all jobs of a run, one by one."""
    for at in range(run.count):
        index, shared = run.start + at, run.shared
        view = replace(
            shared,
            id=run.first_id + at,
            options=run.payloads.options_of(index, shared.options),
            payload=run.payloads[index] if with_payloads else b"",
            payload_bytes=run.payloads.size_of(index),
            job_key=run.payloads.job_key_of(index),
        )
        if run.ended_ms:
            view.ended_ms = run.ended_ms[at]
        if run.lease_until_ms:
            view.lease_until_ms = run.lease_until_ms[at]
        yield view


async def pushed(runtime: Runtime, *payloads: bytes, run_at_ms: int = 0, **own: object) -> int:
    """A lot in queue mail; returns its first id."""
    given = payloads_of(payloads, **own)  # type: ignore[arg-type]  # headers and keys
    options = JobOptions(name="send", headers=(("to", "all"),))
    command = Push("mail", options, payloads=given, run_at_ms=run_at_ms, level=AckLevel.BUFFERED)
    done = await runtime.pushes.push(command)
    await runtime.core.commits.commit_once()
    return done.first_id


async def in_all_states(runtime: Runtime, payloads: list[bytes]) -> int:
    """Lots that wait, are leased in part and have ended in part, with gaps; how many jobs."""
    first_id = await pushed(runtime, *payloads)
    (run,) = (await a_pull(runtime, max_jobs=8)).runs
    done = [first_id + at for at in (0, 1, 2, 5)]
    ack = runtime.settle_calls.ack(done, [run.delivery] * 4, {})
    await committed(runtime, asyncio.ensure_future(ack))
    await runtime.settle_calls.extend([ExtendItem(first_id + 4, run.delivery, lease_ms=90_000)])
    hole = Selection(ids=(first_id + 10,))
    cancel = runtime.bulk.cancel_jobs(hole, dry_run=False, audit=NO_AUDIT)
    await committed(runtime, asyncio.ensure_future(cancel))
    await pushed(runtime, *payloads, run_at_ms=1 << 42)
    headers = {"to": ["me", *[""] * 11]}
    await pushed(runtime, *payloads, headers=headers, job_keys=["k1", *[""] * 11])
    return 3 * len(payloads)


async def both_ways(
    runtime: Runtime, wanted: JobFilter, *, size: int, with_payloads: bool
) -> tuple[list[JobView], list[JobView], int]:
    """All jobs as a list shows them, as runs spread, and how many runs there were."""
    rows: list[JobView] = []
    spread: list[JobView] = []
    token, runs = "", 0
    while token or not rows:
        views, token = await runtime.jobs.list_jobs(
            wanted, page_size=size, page_token=token, include_payloads=with_payloads
        )
        rows += views
        if not token:
            break
    token = ""
    while token or not spread:
        page, token = await runtime.jobs.list_runs(
            wanted, page_size=size, page_token=token, include_payloads=with_payloads
        )
        of_page = list(page.jobs)
        for run in page.runs:
            of_page += jobs_of(run, with_payloads=with_payloads)
        assert len(of_page) <= size
        spread += sorted(of_page, key=lambda view: view.id)
        runs += len(page.runs)
        if not token:
            break
    return rows, spread, runs


@pytest.mark.parametrize("size", [1, 5, 100])
@pytest.mark.parametrize("with_payloads", [True, False])
@pytest.mark.parametrize("payloads", [EVEN, UNEVEN], ids=["even", "uneven"])
async def test_a_list_of_runs_holds_what_a_list_of_jobs_holds(
    runtime: Runtime, payloads: list[bytes], with_payloads: bool, size: int
) -> None:
    """Job by job and field by field; no job is left out or there twice, and pages are in order."""
    jobs = await in_all_states(runtime, payloads)
    rows, spread, runs = await both_ways(runtime, ANY, size=size, with_payloads=with_payloads)
    assert spread == rows
    assert len(rows) == jobs
    assert size == 1 or runs < jobs // 2


@pytest.mark.parametrize(
    "wanted",
    [
        *[JobFilter(states=frozenset({state})) for state in JobState if state],
        JobFilter(states=frozenset({JobState.READY, JobState.COMPLETED})),
        JobFilter(queue="mail", name="send"),
        JobFilter(name="other"),
        JobFilter(headers=(("to", "me"),)),
        JobFilter(headers=(("to", "all"),)),
        JobFilter(error_contains="x"),
        JobFilter(pushed_after_ms=1 << 44),
    ],
)
async def test_filters_choose_the_same_jobs(runtime: Runtime, wanted: JobFilter) -> None:
    """Also by headers that each job has of its own: then such jobs come one by one."""
    await in_all_states(runtime, UNEVEN)
    rows, spread, _ = await both_ways(runtime, wanted, size=50, with_payloads=True)
    assert spread == rows


async def test_filters_by_time_choose_jobs_of_a_run_that_ended_one_after_the_other(
    runtime: Runtime,
) -> None:
    """They are one row, and lists of runs showed all of them or none."""
    first_id = await pushed(runtime, *EVEN)
    (run,) = (await a_pull(runtime, max_jobs=12)).runs
    clock = runtime.core.clock
    assert isinstance(clock, ManualClock)
    for job_id in range(first_id, first_id + 12):
        ack = runtime.settle_calls.ack([job_id], [run.delivery], {})
        await committed(runtime, asyncio.ensure_future(ack))
        clock.advance(100)
    every, _, runs = await both_ways(runtime, ANY, size=100, with_payloads=False)
    assert runs == 1
    times = [view.ended_ms for view in every]
    for bound in (times[0] - 1, *times, times[-1] + 1):
        for wanted in (JobFilter(ended_after_ms=bound), JobFilter(ended_before_ms=bound)):
            rows, spread, _ = await both_ways(runtime, wanted, size=100, with_payloads=False)
            assert spread == rows


async def test_a_run_is_decided_unless_its_jobs_have_the_header_themselves() -> None:
    own = payloads_of([b"x", b"y"], {"to": ["me", ""]})
    assert is_run_decided(own, JobFilter(headers=(("from", "me"),)))
    assert not is_run_decided(own, JobFilter(headers=(("to", "me"),)))
    assert is_run_decided(payloads_of([b"x"]), JobFilter(headers=(("to", "me"),)))


def a_run(*payloads: bytes, **own: object) -> JobRun:
    given = payloads_of(payloads, **own)  # type: ignore[arg-type]  # headers and keys
    view = JobView(7, "mail", JobState.READY, DEFAULT_OPTIONS, b"", 1)
    return JobRun(view, 7, len(payloads), given, 0)


def test_a_part_has_the_columns_of_its_jobs() -> None:
    whole = replace(a_run(*UNEVEN), ended_ms=range(12), lease_until_ms=range(20, 32))
    part = whole.part(9, 3)
    assert (part.first_id, part.end_id, part.start) == (9, 12, 2)
    assert (list(part.ended_ms), list(part.lease_until_ms)) == ([2, 3, 4], [22, 23, 24])
    assert whole.part(7, 12) is whole


@pytest.mark.parametrize("with_payloads", [True, False])
@pytest.mark.parametrize(
    "run",
    [
        a_run(*UNEVEN),
        a_run(*[b"x" * 300] * 12),
        a_run(*UNEVEN, headers={"trace": ["v" * 500] * 12}),
        replace(a_run(*EVEN), ended_ms=range(12)),
    ],
)
def test_what_fits_is_the_most_that_fits(run: JobRun, with_payloads: bool) -> None:
    """However the bytes of its jobs are spread."""
    for room in range(0, 8_000, 97):
        count = run.fitting(room, with_payloads=with_payloads)
        sizes = [run.shown_bytes(n, with_payloads=with_payloads) for n in range(run.count + 1)]
        assert count == max((n for n, size in enumerate(sizes) if size <= room), default=0)
