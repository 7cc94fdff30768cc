"""Phases of jobs, over a real server and a socket."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from jobline import (
    AsyncClient,
    Backoff,
    EventKind,
    FailAction,
    PhaseState,
    Worker,
    WrongState,
)
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import RunningServer
from tests.client.live.working import working
from tests.e2e.test_restart import a_life

NAMES = ["parse", "load", "check"]


async def test_a_retry_begins_at_the_first_unfinished_phase(
    server: RunningServer, client: AsyncClient
) -> None:
    """Each phase runs once, whatever happens between them."""
    worker, ran = Worker(server.address), []

    def parse(rows):
        ran.append("parse")
        return rows * 2

    async def load(rows):
        ran.append("load")
        return {"loaded": rows}

    @worker.handler("import")
    async def handle(payload: int, context):
        rows = context.phases.run("parse", parse, payload)
        if context.attempt == 1:
            raise ConnectionError("the database is away")
        loaded = await context.phases.run("load", load, rows)
        context.phases.finish("check")
        return loaded

    pushed = await client.push("import", 21, phases=NAMES, backoff=Backoff(base=0))
    async with working(worker):
        assert (await client.wait_one(pushed.id)).value() == {"loaded": 42}

    assert ran == ["parse", "load"]
    job = await client.jobs.get(pushed.id)
    assert [(phase.name, phase.state, phase.attempt) for phase in job.phases] == [
        ("parse", PhaseState.COMPLETED, 1),
        ("load", PhaseState.COMPLETED, 2),
        ("check", PhaseState.COMPLETED, 2),
    ]
    assert (job.phases[0].result_value(), job.phases[2].result_value()) == (42, None)
    assert job.progress == 100


async def test_phases_show_where_a_job_is_and_where_it_failed(client: AsyncClient) -> None:
    pushed = await client.push("import", b"x", phases=NAMES)
    (job,) = await client.pull("import")
    await client.extend(job, phase="parse", phase_result={"rows": 3})
    await client.extend(job, progress=50, message="half of it")
    shown = await client.jobs.get(pushed.id)
    assert shown.progress == 50
    assert [phase.state.name for phase in shown.phases] == ["COMPLETED", "ACTIVE", "PENDING"]
    assert (shown.phases[1].progress, shown.phases[1].message) == (50, "half of it")
    await client.fail(job, "no room", then=FailAction.DEAD)
    shown = await client.jobs.get(pushed.id)
    assert shown.phases[1].state is PhaseState.FAILED
    assert shown.phases[1].error is not None
    assert shown.phases[1].error.message == "no room"


async def test_only_the_next_phase_can_be_finished(client: AsyncClient) -> None:
    """Nothing of such a call is done. To finish one again changes nothing."""
    pushed = await client.push("import", b"x", phases=NAMES)
    (job,) = await client.pull("import")
    with pytest.raises(WrongState, match="at its phase 'parse'"):
        await client.extend(job, phase="check", log=["not written"])
    await client.extend(job, phase="parse", phase_result=b"1")
    await client.extend(job, phase="parse", phase_result=b"2")
    shown = await client.jobs.get(pushed.id)
    assert (shown.phases[0].result, shown.log_lines) == (b"1", 0)


async def test_watchers_hear_of_finished_phases(client: AsyncClient) -> None:
    """The event names the phase, and has the progress of the job."""
    heard = asyncio.Event()

    async def watch() -> tuple[EventKind, str, float]:
        kinds = [EventKind.LEASED, EventKind.PHASE_COMPLETED]
        async for event, _ in client.watch(kinds=kinds):
            if event.kind is EventKind.PHASE_COMPLETED:
                return event.kind, event.message, event.progress
            heard.set()
        raise AssertionError

    watching = asyncio.create_task(watch())
    while not heard.is_set():  # until it is connected
        await client.push("other", b"x")
        await client.pull("other")
        await asyncio.sleep(0.01)
    await client.push("import", b"x", phases=NAMES)
    (job,) = await client.pull("import")
    await client.extend(job, phase="parse")
    kind, name, progress = await watching
    assert (kind, name) == (EventKind.PHASE_COMPLETED, "parse")
    assert progress == pytest.approx(100 / 3)


async def test_phases_outlive_the_process(tmp_path: Path) -> None:
    """From the journal, and from the checkpoint; also of a job that has ended."""
    clock = ManualClock()
    async with a_life(tmp_path, clock) as client:
        live, dead = (await client.push_payloads("import", [b"x"] * 2, phases=NAMES)).ids
        first, second = await client.pull("import", max_jobs=2)
        await client.extend(first, phase="parse", phase_result=b"rows")
        await client.extend(second, phase="parse")
        await client.fail(second, "no", then=FailAction.DEAD)
    for _ in range(2):
        async with a_life(tmp_path, clock) as client:
            shown = await client.jobs.get(live)
            assert (shown.phases[0].state, shown.phases[0].result) == (
                PhaseState.COMPLETED,
                b"rows",
            )
            assert (await client.jobs.get(dead)).phases[1].state is PhaseState.FAILED
    async with a_life(tmp_path, clock) as client:
        await client.release(first)
        (again,) = await client.pull("import")
        assert (again.id, again.phase_results) == (live, (b"rows",))
