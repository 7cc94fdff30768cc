"""Results of children last until their parent has ended, whatever retention says."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobline import AsyncClient, FlowJob, JobNotFound, JobState, Retention
from jobline_server.testing import RunningServer, ServerProcess, running_server
from tests.e2e.test_retention import retain

# Of several shards, whatever their number is.
QUEUES = [f"leaves-{number}" for number in range(6)]
HOUR = 3_600_000


async def complete_children(client: AsyncClient) -> None:
    """Each child returns the name of its queue."""
    for queue in QUEUES:
        for job in await client.pull(queue, max_jobs=9):
            await client.ack(job, result=queue)


async def results(client: AsyncClient, parent: int) -> list[object]:
    """What the parent gets."""
    return [child.result_value() for child in await client.flows.children(parent)]


def a_flow(**options: object) -> FlowJob:
    """A parent with a child in each queue, and a second one in the first: both in one lot."""
    children = [FlowJob(queue, **options) for queue in [QUEUES[0], *QUEUES]]  # type: ignore[arg-type]
    return FlowJob("root", children=children, backoff=None)


EVERY = [QUEUES[0], *QUEUES]


async def retained_for_hours(server: RunningServer) -> None:
    """Long enough for both stages of retention, again and again."""
    for _ in range(4):
        await retain(server, 2 * HOUR)


@pytest.mark.parametrize(
    "retention",
    [
        Retention(remove_on_complete=True),
        Retention(age=0),
        Retention(age=0, delete_after=0),
        Retention(count=0),
    ],
    ids=str,
)
async def test_no_retention_of_children_takes_results_from_their_parent(
    client: AsyncClient, server: RunningServer, retention: Retention
) -> None:
    """Not before it runs, and not between its attempts; when it has ended, they go."""
    pushed = await client.flows.push(a_flow(retention=retention))
    await complete_children(client)
    await retained_for_hours(server)
    (job,) = await client.pull("root", wait=20)
    assert await results(client, job.id) == EVERY
    await client.fail(job, "again")
    await retained_for_hours(server)
    (job,) = await client.pull("root", wait=20)
    assert (job.attempt, await results(client, job.id)) == (2, EVERY)
    await client.ack(job)
    await retained_for_hours(server)
    for child in pushed.ids:
        if child != pushed.id:
            with pytest.raises(JobNotFound):
                await client.jobs.get(child)


@pytest.mark.parametrize(
    "retention", [Retention(remove_on_complete=True), Retention(count=0), Retention(age=0)], ids=str
)
async def test_no_retention_of_a_queue_takes_results_from_parents(
    client: AsyncClient, server: RunningServer, retention: Retention
) -> None:
    """The next job that completes there has none of it."""
    for queue in QUEUES:
        await client.queues.update(queue, retention=retention)
    await client.flows.push(a_flow())
    await complete_children(client)
    other = await client.push(QUEUES[0], 1)
    await complete_children(client)
    await retained_for_hours(server)
    (job,) = await client.pull("root", wait=20)
    assert await results(client, job.id) == EVERY
    with pytest.raises(JobNotFound):
        await client.jobs.get(other.id)


async def test_job_that_depends_on_another_gets_its_result_too(
    client: AsyncClient, server: RunningServer
) -> None:
    """Also if that one had completed before it was pushed."""
    first = await client.push(QUEUES[0], 1, retention=Retention(age=0, delete_after=60))
    await complete_children(client)
    await client.push("root", 1, depends_on=[first.id])
    await retained_for_hours(server)
    (job,) = await client.pull("root", wait=20)
    assert await results(client, job.id) == QUEUES[:1]


async def test_added_children_are_kept_as_well(client: AsyncClient, server: RunningServer) -> None:
    await client.push("root", 1)
    (job,) = await client.pull("root", wait=20)
    child = FlowJob(QUEUES[0], retention=Retention(remove_on_complete=True))
    await client.flows.add_children(job, child)
    await complete_children(client)
    await retained_for_hours(server)
    (job,) = await client.pull("root", wait=20)
    assert await results(client, job.id) == QUEUES[:1]


async def test_results_outlast_a_stop(tmp_path: Path) -> None:
    retention = Retention(remove_on_complete=True)
    async with running_server(tmp_path) as server, AsyncClient(server.address) as client:
        await client.flows.push(a_flow(retention=retention))
        await complete_children(client)
    async with running_server(tmp_path) as server, AsyncClient(server.address) as client:
        (job,) = await client.pull("root", wait=20)
        assert await results(client, job.id) == EVERY


async def test_results_outlast_a_kill(tmp_path: Path) -> None:
    """Both of them in the journal alone: what ended, and who waits for it."""
    retention = Retention(remove_on_complete=True)
    async with ServerProcess(tmp_path / "data") as server, AsyncClient(server.address) as client:
        await client.flows.push(a_flow(retention=retention))
        await complete_children(client)
        await server.kill()
        await server.start()
        (job,) = await client.pull("root", wait=20)
        assert await results(client, job.id) == EVERY
        await client.fail(job, "again")
        await server.kill()
        await server.start()
        assert await results(client, job.id) == EVERY


async def test_deleting_a_child_by_hand_is_final(client: AsyncClient) -> None:
    """The parent runs, as the child had completed, and finds no result."""
    pushed = await client.flows.push(FlowJob("root", children=[FlowJob(QUEUES[0])]))
    (job,) = await client.pull(QUEUES[0], wait=20)
    await client.ack(job, result=1)
    await client.jobs.delete(job.id)
    (root,) = await client.pull("root", wait=20)
    assert root.id == pushed.id
    (child,) = await client.flows.children(root.id)
    assert (child.result, child.state) == (b"", JobState.UNSPECIFIED)
