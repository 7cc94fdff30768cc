"""Options of time and order over a socket, and over a restart."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from jobline import AsyncClient, Backoff, EndReason, JobOptions, JobState, NewJob
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import RunningServer, running_server
from tests.e2e.test_restart import a_life


async def ids_of(client: AsyncClient, queue: str = "mail") -> list[int]:
    """The jobs that come next."""
    return [job.id for job in await client.pull(queue, max_jobs=100, wait=5)]


async def test_the_last_job_goes_first_where_it_says_so(client: AsyncClient) -> None:
    """The jobs of one push keep their order."""
    plain = await client.push("mail", b"plain")
    first = await client.push("mail", b"first", lifo=True)
    batch = await client.push_many("mail", [NewJob(b"1", job_key="k"), b"2"], lifo=True)
    assert await ids_of(client) == [batch[0].id, batch[1].id, first.id, plain.id]


async def test_the_front_of_a_lane_is_there_after_a_restart(tmp_path: Path) -> None:
    """So is the order that comes next."""
    clock = ManualClock()
    async with a_life(tmp_path, clock) as client:
        plain = await client.push("mail", b"plain")
        first = await client.push("mail", b"first", lifo=True)
    async with a_life(tmp_path, clock) as client:
        second = await client.push("mail", b"second", lifo=True)
    async with a_life(tmp_path, clock) as client:
        assert await ids_of(client) == [second.id, first.id, plain.id]


async def test_pauses_are_those_of_the_list(server: RunningServer, client: AsyncClient) -> None:
    """One after the other, and the last one again; what a job says replaces what its push says."""
    options = JobOptions(backoff=Backoff(base=60, jitter=0), max_attempts=0)
    own = NewJob(b"x", backoff=Backoff(delays=[1, "5s"]))
    (pushed,) = await client.push_many("mail", [own], options=options)
    for pause in (1, 5, 5):
        (job,) = await client.pull("mail", wait=5)
        await client.fail(job, "no")
        server.advance(pause * 1_000 - 1)
        assert (await client.jobs.get(pushed.id)).state is JobState.SCHEDULED
        server.advance(1)
    shown = (await client.jobs.get(pushed.id)).options.backoff
    assert shown == Backoff.from_message(Backoff(delays=[1, 5], jitter=0.0).to_message())


async def test_no_retry_starts_after_its_last_moment(tmp_path: Path) -> None:
    """Not even over a restart."""
    clock = ManualClock()
    until = datetime.fromtimestamp(clock.now().wall_ms / 1_000 + 30, UTC)
    async with a_life(tmp_path, clock) as client:
        pushed = await client.push(
            "mail", b"x", retry_until=until, backoff=Backoff(delays=[20], jitter=0)
        )
        (job,) = await client.pull("mail")
        await client.fail(job, "no")
    clock.advance(20_000)
    async with (
        running_server(tmp_path, clock=clock) as server,
        AsyncClient(server.address) as client,
    ):
        (job,) = await client.pull("mail", wait=5)
        await client.fail(job, "no")
        ended = await client.jobs.get(pushed.id)
        assert (ended.state, ended.reason) == (JobState.DEAD, EndReason.RETRY_UNTIL_PASSED)
        assert ended.options.retry_until == until.replace(
            microsecond=until.microsecond // 1000 * 1000
        )
