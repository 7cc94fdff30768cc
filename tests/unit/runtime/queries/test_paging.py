"""Pages of jobs: bounded by number and bytes, complete together, with stable times."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from jobline.v1 import job_pb2
from jobline_server.engine.commands import FailItem, Push
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    AckLevel,
    FailAction,
    JobError,
    JobOptions,
    JobState,
)
from jobline_server.runtime.queries.paging import API_PAGE_BYTES_MAX, shown_bytes
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import JobFilter, JobView
from tests.unit.runtime.commits.test_commits import a_pull
from tests.unit.runtime.ended.test_many_ids import committed

MIB = 1 << 20
LARGE = bytes(MIB)
ANY = JobFilter()


async def pushed(runtime: Runtime, *payloads: bytes, options: JobOptions = DEFAULT_OPTIONS) -> int:
    """A lot in queue mail, or a single job where there is one payload; returns the first id."""
    command = Push("mail", options, level=AckLevel.BUFFERED)
    if len(payloads) == 1:
        command.rows = JobColumns([payloads[0]], [options])
    else:
        command.payloads = Payloads.of(payloads)
    done = await runtime.pushes.push(command)
    await runtime.core.commits.commit_once()
    return done.first_id


async def all_pages(
    runtime: Runtime, wanted: JobFilter = ANY, *, size: int = 1_000, payloads: bool = True
) -> list[list[JobView]]:
    pages, token = [], ""
    for _ in range(100):
        page, token = await runtime.jobs.list_jobs(
            wanted, page_size=size, page_token=token, include_payloads=payloads
        )
        pages.append(page)
        if not token:
            return pages
    raise AssertionError("there is always another page")


async def settle(runtime: Runtime, *, error: JobError | None = None) -> None:
    """Pulls ready jobs and completes them, or makes them DEAD."""
    leased = await a_pull(runtime)
    leases = [(job.id, job.delivery) for job in leased.jobs]
    for run in leased.runs:
        leases += [(run.first_id + at, run.delivery) for at in range(len(run.payloads))]
    if error is not None:
        fails = [FailItem(*lease, error, FailAction.DEAD) for lease in leases]
        await committed(runtime, asyncio.ensure_future(runtime.settle_calls.fail(fails)))
    else:
        ids, deliveries = ([*column] for column in zip(*leases, strict=True))
        await committed(
            runtime, asyncio.ensure_future(runtime.settle_calls.ack(ids, deliveries, {}))
        )


async def test_ids_of_dependencies_count_as_bytes(runtime: Runtime) -> None:
    """A job lists all that it depends on."""
    job_id = await pushed(runtime, b"x")
    view = await runtime.jobs.get_job(job_id)
    many = replace(view, ties=Ties(parents=tuple(range(1 << 52, (1 << 52) + 1_000))))
    message = job_pb2.Job(options=job_pb2.JobOptions(depends_on=many.ties.parents))
    assert shown_bytes(many) - shown_bytes(view) >= message.ByteSize() - 16


async def test_a_page_ends_when_it_shows_enough_bytes(runtime: Runtime) -> None:
    """Over members of lots, single jobs and ended ones; none is left out and none comes twice."""
    await pushed(runtime, LARGE, LARGE, LARGE, b"small")
    await settle(runtime)
    await pushed(runtime, LARGE)
    await pushed(runtime, LARGE, b"small", LARGE, LARGE)
    await pushed(runtime, LARGE)
    pages = await all_pages(runtime)
    shown = [sum(len(view.payload) for view in page) for page in pages]
    assert max(shown) <= API_PAGE_BYTES_MAX
    ids = [view.id for page in pages for view in page]
    assert (len(ids), ids) == (10, sorted(ids))
    assert len(pages) > 3


async def test_a_job_that_is_larger_than_a_page_is_one_of_its_own(runtime: Runtime) -> None:
    await pushed(runtime, b"small")
    await pushed(runtime, bytes(4 * MIB))
    await pushed(runtime, b"small")
    assert [len(page) for page in await all_pages(runtime)] == [1, 1, 1]


async def test_pages_without_payloads_are_not_cut_by_them(runtime: Runtime) -> None:
    """Only their sizes are shown."""
    await pushed(runtime, *[LARGE] * 4)
    await settle(runtime)
    await pushed(runtime, *[LARGE] * 4)
    (page,) = await all_pages(runtime, payloads=False)
    assert [(view.payload, view.payload_bytes) for view in page] == [(b"", MIB)] * 8


async def test_pages_are_cut_by_what_errors_say(runtime: Runtime) -> None:
    """They are shown with and without payloads."""
    await pushed(runtime, *[b"x"] * 10)
    await settle(runtime, error=JobError(message="é" * (MIB // 4), stack="s" * (MIB // 2)))
    dead = JobFilter(states=frozenset({JobState.DEAD}))
    pages = await all_pages(runtime, dead, payloads=False)
    assert sum(map(len, pages)) == 10
    assert all(len(page) <= 3 for page in pages)


@pytest.mark.parametrize(("size", "lengths"), [(2, [2, 2, 2]), (3, [3, 3]), (4, [4, 2])])
async def test_pages_are_cut_by_number(runtime: Runtime, size: int, lengths: list[int]) -> None:
    await pushed(runtime, b"1", b"2")
    await settle(runtime)
    await pushed(runtime, b"3", b"4")
    await pushed(runtime, b"5")
    await pushed(runtime, b"6")
    assert [len(page) for page in await all_pages(runtime, size=size)][: len(lengths)] == lengths
