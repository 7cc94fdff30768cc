"""Lists and bulk calls by what only the records of jobs have find what a plain look at all of them
finds.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobline_server.engine.commands import Push
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.rules import JobRules
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import AckLevel, JobOptions, JobState
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit, JobFilter, JobView, Selection
from tests.pushed_payloads import payloads_of
from tests.unit.runtime.commits.test_commits import a_pull
from tests.unit.runtime.conftest import opened
from tests.unit.runtime.ended.test_many_ids import committed

DONE = frozenset({JobState.COMPLETED})
STEP_MS = 100


@dataclass(frozen=True)
class Pushed:
    """A push: of one job with a group of its own, or of a lot with headers in a column."""

    tags: frozenset[str]
    headers: tuple[tuple[str, str], ...]
    column: tuple[str, ...]
    group: str
    ends: bool


# Some are parts of others, and payloads have them too.
words = st.sampled_from(["", "e", "eu", "eur"])
tags = st.frozensets(words.filter(bool), max_size=2)
headers = st.dictionaries(st.sampled_from(["to", "via"]), words, max_size=2).map(
    lambda found: tuple(sorted(found.items()))
)
pushes = st.builds(
    Pushed, tags, headers, st.lists(words, max_size=3).map(tuple), words, st.booleans()
)
moments = st.none() | st.integers(-1, 5).map(lambda steps: steps * STEP_MS)
filters = st.builds(
    JobFilter,
    states=st.sampled_from([frozenset(), DONE]),
    tags=tags,
    headers=headers,
    group=words,
    pushed_after_ms=moments,
    pushed_before_ms=moments,
)


def is_wanted(view: JobView, wanted: JobFilter) -> bool:
    """The plain reference."""
    has = dict(view.options.headers)
    after, before = wanted.pushed_after_ms, wanted.pushed_before_ms
    return (
        (not wanted.states or view.state in wanted.states)
        and wanted.tags <= set(view.options.rules.tags)
        and all(name in has and has[name] == value for name, value in wanted.headers)
        and wanted.group in ("", view.ties.group)
        and (after is None or view.pushed_ms >= after)
        and (before is None or view.pushed_ms < before)
    )


async def make(runtime: Runtime, push: Pushed) -> None:
    """Pushes, and has the jobs complete if they are to."""
    options = JobOptions(headers=push.headers, rules=JobRules(tags=tuple(sorted(push.tags))))
    command = Push("mail", options, level=AckLevel.BUFFERED)
    if push.column:
        command.payloads = payloads_of([b"eu"] * len(push.column), {"to": push.column})
    else:
        command.rows = JobColumns([b"eu e"], [options], ties=[Ties(group=push.group)])
    await runtime.pushes.push(command)
    await runtime.core.commits.commit_once()
    if not push.ends:
        return
    leased = await a_pull(runtime)
    leases = [(job.id, job.delivery) for job in leased.jobs]
    for run in leased.runs:
        leases += [(run.first_id + at, run.delivery) for at in range(len(run.payloads))]
    if leases:
        ids, deliveries = ([*column] for column in zip(*leases, strict=True))
        call = runtime.settle_calls.ack(ids, deliveries, {})
        await committed(runtime, asyncio.ensure_future(call))


async def listed(runtime: Runtime, wanted: JobFilter, size: int) -> list[JobView]:
    """All pages."""
    found, token = list[JobView](), ""
    while True:
        page, token = await runtime.jobs.list_jobs(
            wanted, page_size=size, page_token=token, include_payloads=False
        )
        found += page
        if not token:
            return found


async def listed_as_runs(runtime: Runtime, wanted: JobFilter, size: int) -> list[int]:
    """The ids of all pages of runs."""
    found, token = list[int](), ""
    while True:
        page, token = await runtime.jobs.list_runs(
            wanted, page_size=size, page_token=token, include_payloads=False
        )
        spans: list[tuple[int, int]] = [(view.id, 1) for view in page.jobs]
        spans += [(run.first_id, run.count) for run in page.runs]
        found += [first + at for first, count in sorted(spans) for at in range(count)]
        if not token:
            return found


async def check(pushed: list[Pushed], wanted: list[JobFilter], size: int) -> None:
    clock = ManualClock()
    with TemporaryDirectory() as name:
        async with opened(Path(name), clock) as runtime:
            began_ms = clock.wall_ms
            for push in pushed:
                await make(runtime, push)
                clock.advance(STEP_MS)
            jobs = await listed(runtime, JobFilter(), 1_000)
            assert len(jobs) == sum(len(push.column) or 1 for push in pushed)
            for one in wanted:
                await compare(runtime, jobs, since(one, began_ms), size)


async def compare(runtime: Runtime, jobs: list[JobView], wanted: JobFilter, size: int) -> None:
    """Compares each way to ask for jobs with the reference."""
    expected = [view for view in jobs if is_wanted(view, wanted)]
    ids = [view.id for view in expected]
    assert [view.id for view in await listed(runtime, wanted, size)] == ids
    assert await listed_as_runs(runtime, wanted, size) == ids
    counted = await runtime.bulk.delete_jobs(Selection(filter=wanted), dry_run=True, audit=Audit())
    assert counted.count + counted.requested == len(ids)


def since(wanted: JobFilter, began_ms: int) -> JobFilter:
    """The filter with times of this run."""
    fields = {name: getattr(wanted, name) for name in JobFilter.__slots__}
    for name in ("pushed_after_ms", "pushed_before_ms"):
        if fields[name] is not None:
            fields[name] += began_ms
    return JobFilter(**fields)


NONE = frozenset[str]()
SHARED = Pushed(frozenset({"eu"}), (("to", "eur"),), ("", "e", "eu"), "", ends=True)
GROUPED = Pushed(NONE, (("via", ""),), (), "eu", ends=True)


@settings(max_examples=40, deadline=None)
@example(
    [SHARED, GROUPED],
    [
        JobFilter(headers=(("to", "eur"),)),
        JobFilter(headers=(("to", "e"),), tags=frozenset({"eu"})),
        JobFilter(headers=(("via", ""),)),
        JobFilter(group="eu"),
        JobFilter(pushed_after_ms=STEP_MS),
    ],
    2,
)
@given(
    st.lists(pushes, min_size=1, max_size=5),
    st.lists(filters, min_size=1, max_size=4),
    st.integers(1, 4),
)
def test_searches_find_what_a_plain_look_finds(
    pushed: list[Pushed], wanted: list[JobFilter], size: int
) -> None:
    """By tags, headers, group and the time of the push, live and ended, in pages of any size."""
    asyncio.run(check(pushed, wanted, size))
