"""Jobs that depend on others, over a real server: in one queue, across shards, over restarts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from jobline import (
    AsyncClient,
    DependencyPolicy,
    EndReason,
    EventKind,
    FailAction,
    JobNotFound,
    JobOptions,
    JobState,
    NewJob,
    ObstacleKind,
    QueueSettings,
    Retention,
)
from jobline.v1 import job_service_pb2
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import RunningServer, running_server

BLOCKED, READY, DEAD = JobState.BLOCKED, JobState.READY, JobState.DEAD


def queue_of(shard: int, shards: int = 8) -> str:
    """A queue of this shard."""
    return next(f"q{n}" for n in range(1_000) if crc32(f"q{n}".encode()) % shards == shard)


HERE, THERE = queue_of(0), queue_of(5)


@asynccontextmanager
async def a_life(data: Path, clock: ManualClock) -> AsyncIterator[AsyncClient]:
    """One server on these files, and a client of it."""
    async with (
        running_server(data, clock=clock) as server,
        AsyncClient(server.address) as client,
    ):
        yield client


async def _now(client: AsyncClient) -> str:
    """The token of a watch that has begun and heard of nothing yet."""
    watch: Any = JobServiceStub(client.channel).Watch(job_service_pb2.WatchRequest())
    begun = await watch.read()
    watch.cancel()
    return str(begun.resume_token)


async def finish(client: AsyncClient, queue: str) -> None:
    """Runs one job of a queue."""
    (leased,) = await client.pull(queue, wait=5)
    await client.ack(leased)


@pytest.mark.parametrize("queue", [HERE, THERE])
async def test_child_starts_when_its_parent_has_completed(client: AsyncClient, queue: str) -> None:
    """G13: also where another shard has the parent."""
    parent = await client.push(queue, b"parent")
    child = await client.push(HERE, b"child", depends_on=[parent], name="child")
    shown = await client.jobs.get(child.id)
    assert (shown.state, shown.options.depends_on, shown.depends_on_left) == (
        BLOCKED,
        (parent.id,),
        1,
    )
    assert (await client.queues.get(HERE)).counts.blocked == 1
    await finish(client, queue)
    (leased,) = await client.pull(HERE, wait=5)
    assert leased.id == child.id
    assert (await client.jobs.get(child.id)).options.depends_on == (parent.id,)


@pytest.mark.parametrize("queue", [HERE, THERE])
async def test_child_of_a_completed_parent_is_ready(client: AsyncClient, queue: str) -> None:
    """Already complete counts, wherever the parent was."""
    parent = await client.push(queue, b"parent")
    await finish(client, queue)
    child = await client.push(HERE, b"child", depends_on=[parent])
    assert (await client.jobs.get(child.id)).state is READY


async def test_a_parent_that_nobody_knows_is_not_found(client: AsyncClient) -> None:
    """And nothing is stored: not a queue, either."""
    with pytest.raises(JobNotFound, match="there is no job 77"):
        await client.push("new", b"child", depends_on=[77])
    assert [queue.name async for queue in client.queues.list()] == []


async def test_a_tree_in_one_push(client: AsyncClient) -> None:
    """By index: no id is known yet."""
    jobs = [NewJob(b"a"), NewJob(b"b"), NewJob(b"c", depends_on_indexes=[0, 1])]
    first, second, last = await client.push_many("tree", jobs)
    assert (await client.jobs.get(last.id)).options.depends_on == (first.id, second.id)
    await finish(client, "tree")
    await finish(client, "tree")
    assert [job.id for job in await client.pull("tree", wait=5)] == [last.id]


@pytest.mark.parametrize("queue", [HERE, THERE])
@pytest.mark.parametrize(
    ("policy", "state"),
    [("fail", DEAD), ("cancel", JobState.CANCELLED), ("ignore", JobState.COMPLETED)],
)
async def test_policies(client: AsyncClient, queue: str, policy: str, state: JobState) -> None:
    """One that is dead before the push applies its policy at once, another when it dies."""
    options = JobOptions(on_dependency_failure=DependencyPolicy[policy.upper()], name="c")
    parent = await client.push(queue, b"parent")
    before = await client.push(HERE, b"c", options=options, depends_on=[parent])
    (leased,) = await client.pull(queue, wait=5)
    await client.fail(leased, "no", then=FailAction.DEAD)
    after = await client.push(HERE, b"c", options=options, depends_on=[parent])
    if policy == "ignore":
        await finish(client, HERE)
        await finish(client, HERE)
    for child in (before, after):
        end = await client.wait_one(child.id, timeout=10)
        assert end.state is state
        if policy != "ignore":
            assert end.reason is EndReason.DEPENDENCY_FAILED
            assert end.error is not None
            assert end.error.message == f"job {parent.id}, on which it depends, is DEAD"


@pytest.mark.parametrize("queue", [HERE, THERE])
async def test_child_waits_for_the_retry_of_its_parent(client: AsyncClient, queue: str) -> None:
    parent = await client.push(queue, b"parent")
    child = await client.push(HERE, b"c", depends_on=[parent], on_dependency_failure="wait")
    (leased,) = await client.pull(queue, wait=5)
    await client.fail(leased, "no", then=FailAction.DEAD)
    assert (await client.jobs.get(child.id)).state is BLOCKED
    await client.jobs.retry(parent.id)
    await finish(client, queue)
    assert [job.id for job in await client.pull(HERE, wait=5)] == [child.id]


async def test_a_parent_of_another_shard_that_is_not_kept(client: AsyncClient) -> None:
    """It completes before the message arrives that says who waits, and leaves its end."""
    options = JobOptions(retention=Retention(remove_on_complete=True))
    await client.push(THERE, b"parent", options=options)
    (leased,) = await client.pull(THERE)
    child = await client.push(HERE, b"child", depends_on=[leased])
    await client.ack(leased)
    assert [job.id for job in await client.pull(HERE, wait=5)] == [child.id]


async def test_a_deleted_queue_fails_its_dependents(client: AsyncClient) -> None:
    parent = await client.push(THERE, b"parent")
    child = await client.push(HERE, b"child", depends_on=[parent])
    await client.queues.delete(THERE)
    end = await client.wait_one(child.id, timeout=10)
    assert end.error is not None
    assert end.error.message == f"job {parent.id}, on which it depends, was deleted"


async def test_a_job_is_blocked_for_so_long_at_most(
    server: RunningServer, client: AsyncClient
) -> None:
    parent = await client.push("q", b"parent")
    child = await client.push("q", b"child", depends_on=[parent], block_timeout=60)
    shown = await client.jobs.get(child.id)
    assert shown.blocked_until is not None
    assert shown.pushed_at is not None
    assert (shown.blocked_until - shown.pushed_at).total_seconds() == 60
    server.advance(60_000)
    end = await client.wait_one(child.id, timeout=10)
    assert (end.state, end.reason) == (DEAD, EndReason.DEPENDENCY_FAILED)


async def test_settings_of_a_queue_are_the_defaults(client: AsyncClient) -> None:
    settings = QueueSettings(on_dependency_failure="cancel", block_timeout=3_600)
    await client.queues.update("q", settings)
    found = (await client.queues.get("q")).settings
    assert found.on_dependency_failure is DependencyPolicy.CANCEL
    parent = await client.push("p", b"parent")
    child = await client.push("q", b"child", depends_on=[parent])
    assert (await client.jobs.get(child.id)).blocked_until is not None
    await client.jobs.cancel(parent.id)
    assert (await client.wait_one(child.id, timeout=10)).state is JobState.CANCELLED


async def test_what_keeps_it_is_explained_and_seen(client: AsyncClient) -> None:
    parent = await client.push("q", b"parent")
    child = await client.push("q", b"child", depends_on=[parent])
    explained = await client.jobs.explain(child.id)
    (obstacle,) = explained.obstacles
    assert (obstacle.kind, obstacle.count) == (ObstacleKind.DEPENDENCIES, 1)
    assert obstacle.message == (
        f"it waits for 1 of the 1 jobs that it depends on: {parent.id} (READY)"
    )
    kinds = [EventKind.BLOCKED, EventKind.UNBLOCKED]
    token = await _now(client)
    await finish(client, "q")
    async for watched in client.watch(queues=["q"], kinds=kinds, resume_token=token):
        assert (watched.event.kind, watched.event.job_id) == (EventKind.UNBLOCKED, child.id)
        break


@pytest.mark.parametrize("queue", [HERE, THERE])
async def test_dependencies_outlive_the_process(tmp_path: Path, queue: str) -> None:
    """G13: a crash never leaves an orphan. Predecessors: flow parents were lost at a restart."""
    clock = ManualClock()
    async with a_life(tmp_path, clock) as client:
        parent = await client.push(queue, b"parent")
        child = await client.push(HERE, b"child", depends_on=[parent])
    async with a_life(tmp_path, clock) as client:
        assert (await client.jobs.get(child.id)).state is BLOCKED
        await finish(client, queue)
    async with a_life(tmp_path, clock) as client:
        assert [job.id for job in await client.pull(HERE, wait=5)] == [child.id]
