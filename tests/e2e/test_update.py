"""Changes of a job that waits, by the client and over a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobline import AsyncClient, JobNotFound, JobState, WrongState
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import running_server


async def test_a_waiting_job_gets_another_payload_priority_and_time(client: AsyncClient) -> None:
    """Each by itself, or together."""
    lot = await client.push_payloads("mail", [b"a", b"b", b"c"])
    changed = await client.jobs.update(lot.ids[2], payload={"to": "x"}, priority=7, reason="vip")
    assert (changed.payload, changed.options.priority) == (b'{"to":"x"}', 7)
    put_off = await client.jobs.update(lot.ids[0], delay="1h")
    assert put_off.state is JobState.SCHEDULED
    assert [job.id for job in await client.pull("mail", max_jobs=9)] == [lot.ids[2], lot.ids[1]]
    assert (await client.jobs.update(lot.ids[0], delay=0, payload=b"")).state is JobState.READY
    (last,) = await client.pull("mail")
    assert (last.id, last.payload) == (lot.ids[0], b"")


async def test_a_job_that_runs_or_has_ended_is_refused(client: AsyncClient) -> None:
    """With a reason that a program can read."""
    pushed = await client.push("mail", b"x")
    (job,) = await client.pull("mail")
    with pytest.raises(WrongState, match="is ACTIVE"):
        await client.jobs.update(pushed.id, priority=1)
    await client.ack(job)
    with pytest.raises(WrongState, match="is COMPLETED"):
        await client.jobs.update(pushed.id, priority=1)


async def test_a_change_outlives_the_process(tmp_path: Path) -> None:
    """What was answered is on disk."""
    clock = ManualClock()
    async with (
        running_server(tmp_path, clock=clock) as server,
        AsyncClient(server.address) as client,
    ):
        lot = await client.push_payloads("mail", [b"a", b"b"])
        await client.jobs.update(lot.ids[1], payload=b"new", priority=1)
    async with (
        running_server(tmp_path, clock=clock) as server,
        AsyncClient(server.address) as client,
    ):
        first, second = await client.pull("mail", max_jobs=2)
        assert [(first.id, first.payload), (second.id, second.payload)] == [
            (lot.ids[1], b"new"),
            (lot.ids[0], b"a"),
        ]


async def test_a_forgotten_key_stays_forgotten_over_a_restart(tmp_path: Path) -> None:
    """With a checkpoint of it in between; what was pushed with it since is known."""
    clock = ManualClock()
    async with (
        running_server(tmp_path, clock=clock) as server,
        AsyncClient(server.address) as client,
    ):
        first = await client.push("mail", b"x", job_key="k")
        await client.push("mail", b"x", job_key="gone")
        await server.runtime.checkpoints.take_last()
        assert await client.jobs.forget_key("mail", "k", reason="wrong address") == first.id
        await client.jobs.forget_key("mail", "gone")
        second = await client.push("mail", b"y", job_key="k")
        await server.runtime.checkpoints.take_last()
    async with (
        running_server(tmp_path, clock=clock) as server,
        AsyncClient(server.address) as client,
    ):
        assert (await client.jobs.get_by_key("mail", "k")).id == second.id
        with pytest.raises(JobNotFound):
            await client.jobs.get_by_key("mail", "gone")
