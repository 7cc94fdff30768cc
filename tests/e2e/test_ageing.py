"""Priorities that rise with age, over a socket and over restarts."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobline import Ageing, AsyncClient, InvalidArgument, QueueSettings
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import RunningServer
from tests.e2e.test_restart import a_life


async def test_old_jobs_of_low_priority_are_served(
    server: RunningServer, client: AsyncClient
) -> None:
    """G12: while new ones of a higher one keep coming."""
    await client.queues.update("mail", ageing=Ageing(after="10s", step=2))
    low = await client.push("mail", b"low")
    ids = []
    for _ in range(4):
        await client.push_payloads("mail", [b"high"], priority=5)
        ids += [job.id for job in await client.pull("mail")]
        server.advance(10_000)
    assert ids.index(low.id) == 3
    assert (await client.queues.get("mail")).settings.ageing == Ageing.from_message(
        Ageing(after=10, step=2).to_message()
    )


async def test_it_is_said_what_a_job_counts_as(server: RunningServer, client: AsyncClient) -> None:
    await client.queues.update("mail", ageing=Ageing(after=60, max=3))
    low = await client.push("mail", b"low")
    server.advance(600_000)
    await client.push_payloads("mail", [b"high"] * 3, priority=4)
    explained = await client.jobs.explain(low.id)
    assert explained.obstacles[-1].message == (
        "3 jobs go before it; by its age its priority 0 counts as 3"
    )


async def test_age_outlives_the_process(tmp_path: Path) -> None:
    """Since a push, a delay or a retry, and the time that the server was down counts; from the
    checkpoint of a polite stop as from the journal.
    """
    clock = ManualClock()
    async with a_life(tmp_path, clock) as client:
        await client.queues.update("mail", ageing=Ageing(after=60))
        later = await client.push("mail", b"later", delay=30)
        lot = await client.push_payloads("mail", [b"a", b"b"], delay=30, priority=1, name="lot")
        old = await client.push("mail", b"old")
    clock.advance(30_000)
    async with a_life(tmp_path, clock) as client:
        (job,) = await client.pull("mail", names=["lot"], wait=5)
        assert job.id == lot.first_id
        await client.release(job)
    clock.advance(30_000)
    async with a_life(tmp_path, clock) as client:
        # One has waited for a minute, the others for half of one.
        found = [job.id for job in await client.pull("mail", max_jobs=3)]
        assert found == [old.id, lot.first_id, lot.first_id + 1]
        await client.push("mail", b"new", priority=1)
    clock.advance(30_000)
    async with a_life(tmp_path, clock) as client:
        assert [job.id for job in await client.pull("mail")] == [later.id]


@pytest.mark.parametrize(
    "ageing", [Ageing(after=0), Ageing(after=1, step=0), Ageing(after=1, max=0)]
)
async def test_what_cannot_be_is_refused(client: AsyncClient, ageing: Ageing) -> None:
    """G22: and the settings stay."""
    with pytest.raises(InvalidArgument, match="ageing"):
        await client.queues.update("mail", ageing=ageing)
    await client.push("mail", b"x")
    assert (await client.queues.get("mail")).settings == QueueSettings()
