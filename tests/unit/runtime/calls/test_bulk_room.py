"""Ended jobs that are put back wait, and only so many may."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobState, QueueSettings
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit, JobFilter, Selection
from tests.unit.runtime.conftest import opened

CANCELLED = JobFilter(queue="q", states=frozenset({JobState.CANCELLED}))
BY_FILTER = Selection(filter=CANCELLED)


@pytest.fixture
async def busy(tmp_path: Path) -> AsyncIterator[Runtime]:
    """A runtime at work, with ten cancelled jobs of a queue."""
    async with opened(tmp_path, ManualClock()) as runtime:
        runtime.start()
        await push(runtime, 10)
        await runtime.bulk.cancel_jobs(
            Selection(filter=JobFilter(queue="q")), dry_run=False, audit=BY
        )
        yield runtime
        await runtime.stop()


BY = Audit("somebody", "")


async def push(runtime: Runtime, count: int) -> int:
    payloads = Payloads.of([b"x"] * count)
    command = Push("q", DEFAULT_OPTIONS, payloads=payloads, level=AckLevel.BUFFERED)
    return (await runtime.pushes.push(command)).first_id


async def limit(runtime: Runtime, where: str, most: int) -> None:
    if where == "queue":
        settings = replace(QueueSettings(), max_waiting=most)
        await runtime.queues.update_queue("q", settings, None, BY)
    else:
        runtime.core.load.waiting_max = most


@pytest.mark.parametrize("where", ["queue", "server"])
async def test_as_many_are_put_back_as_may_wait(busy: Runtime, where: str) -> None:
    """Trial C7: those that stay are named, by id and by filter."""
    await limit(busy, where, 4)
    result = await busy.bulk.retry_jobs(BY_FILTER, dry_run=False, audit=BY)
    assert (result.count, len(result.skipped_ids)) == (4, 6)
    assert busy.queues.get_queue("q").counts[JobState.READY] == 4
    await limit(busy, where, 6)
    ids = Selection(ids=tuple(result.skipped_ids))
    again = await busy.bulk.retry_jobs(ids, dry_run=False, audit=BY)
    assert (again.count, again.skipped_ids) == (2, result.skipped_ids[2:])


@pytest.mark.parametrize(
    ("where", "kind"), [("queue", RefusalKind.QUEUE_FULL), ("server", RefusalKind.SERVER_FULL)]
)
async def test_where_nothing_may_wait_nothing_is_put_back_and_the_reason_is_told(
    busy: Runtime, where: str, kind: RefusalKind
) -> None:
    """Trial C7: a definite refusal, as of a push."""
    await push(busy, 4)
    await limit(busy, where, 4)
    with pytest.raises(Refused) as refused:
        await busy.bulk.retry_jobs(BY_FILTER, dry_run=False, audit=BY)
    assert refused.value.kind is kind
    assert busy.queues.get_queue("q").counts[JobState.READY] == 4
