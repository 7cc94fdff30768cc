"""Changes of jobs that wait, as a call."""

from __future__ import annotations

import asyncio

import pytest

from jobline_server.engine.commands import Pull, Push, RefusalKind, Refused
from jobline_server.engine.decide.update import JobChange
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobState
from jobline_server.runtime.calls.pull_dedup import leases_of, runs_of
from jobline_server.runtime.runtime import Runtime
from tests.pushed_rows import NewJob, rows_of
from tests.unit.runtime.commits.test_commits import a_moment


async def pushed(runtime: Runtime, key: str = "") -> int:
    rows = rows_of([NewJob(b"x", DEFAULT_OPTIONS, key)])
    push = Push("q", DEFAULT_OPTIONS, rows=rows, level=AckLevel.BUFFERED)
    first_id = (await runtime.pushes.push(push)).first_id
    await runtime.core.commits.commit_once()
    return first_id


async def test_an_update_is_answered_when_it_is_on_disk(runtime: Runtime) -> None:
    """With the job as it is then."""
    job_id = await pushed(runtime)
    change = JobChange(b"new", 3, 60_000)
    call = asyncio.ensure_future(runtime.updates.update_job(job_id, change))
    await a_moment()
    assert not call.done()
    await runtime.core.commits.commit_once()
    view = await call
    assert (view.payload, view.options.priority, view.state) == (b"new", 3, JobState.SCHEDULED)


async def test_a_full_disk_takes_no_new_payload(runtime: Runtime) -> None:
    """Its time may be changed all the same: that makes nothing larger."""
    job_id = await pushed(runtime)
    runtime.core.commits.disk_full = True
    with pytest.raises(Refused) as refused:
        await runtime.updates.update_job(job_id, JobChange(b"new"))
    assert refused.value.kind is RefusalKind.DISK_FULL
    call = asyncio.ensure_future(runtime.updates.update_job(job_id, JobChange(delay_ms=60_000)))
    await a_moment()
    await runtime.core.commits.commit_once()
    assert (await call).state is JobState.SCHEDULED


async def test_a_job_that_ended_or_never_was_is_told_apart(runtime: Runtime) -> None:
    """One cannot be changed any more, the other is not there."""
    job_id = await pushed(runtime)
    ((_, delivery),) = leases_of(runs_of(await runtime.pulls.pull(Pull((("q", 1),)))))
    runtime.settles.ack([job_id], [delivery], {})
    await runtime.core.commits.commit_once()
    for wrong, kind in ((job_id, RefusalKind.WRONG_STATE), (job_id + 1, RefusalKind.JOB_NOT_FOUND)):
        with pytest.raises(Refused) as refused:
            await runtime.updates.update_job(wrong, JobChange(priority=1))
        assert refused.value.kind is kind


async def test_a_key_is_forgotten_when_that_is_on_disk(runtime: Runtime) -> None:
    """The call returns the job that it named."""
    job_id = await pushed(runtime, key="k")
    call = asyncio.ensure_future(runtime.updates.forget_key("q", "k"))
    await a_moment()
    assert not call.done()
    await runtime.core.commits.commit_once()
    assert await call == job_id
