"""What operators did is kept, whatever happens to the server, and can be undone."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jobline import (
    AlreadyUndone,
    AsyncClient,
    ChangedSince,
    GroupSettings,
    JobState,
    NewJob,
    NotUndoable,
    Operation,
    OperationNotFound,
    OperationState,
    QueueSettings,
    RateLimit,
)
from jobline.cli.root import build
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import (
    RunningServer,
    ServerProcess,
    running_server,
    running_server_in_thread,
)


async def last(client: AsyncClient) -> Operation:
    """The newest operation."""
    async for operation in client.admin.operations():
        return operation
    raise AssertionError("there is none")


async def undo_last(client: AsyncClient) -> None:
    """Undoes the newest operation: first tried, then done."""
    operation = await last(client)
    assert operation.undoable, operation.not_undoable_because
    tried = await client.admin.undo(operation.id, dry_run=True)
    assert not tried.operation_id
    assert (await last(client)).id == operation.id
    done = await client.admin.undo(operation.id, reason="a mistake")
    undo = await last(client)
    assert (undo.id, undo.undoes, undo.verb) == (done.operation_id, operation.id, "UndoOperation")
    assert (await one(client, operation.id)).undone_by == undo.id
    with pytest.raises(AlreadyUndone, match=undo.id):
        await client.admin.undo(operation.id)


async def one(client: AsyncClient, operation_id: str) -> Operation:
    [found] = [each async for each in client.admin.operations(operation_id=operation_id)]
    return found


async def test_pauses_and_their_ends_are_undone(client: AsyncClient) -> None:
    """A pause comes back with its reason."""
    await client.push("mail", b"x", group="acme")
    await client.queues.pause("mail", reason="repairs")
    await undo_last(client)
    assert not (await client.queues.get("mail")).paused
    await client.queues.pause("mail", reason="repairs")
    await client.queues.resume("mail")
    await undo_last(client)
    queue = await client.queues.get("mail")
    assert (queue.paused, queue.pause_reason) == (True, "repairs")
    await client.queues.groups.pause("mail", "acme", reason="slow")
    await undo_last(client)
    [group] = [each async for each in client.queues.groups.list("mail")]
    assert not group.paused
    await client.schedules.create("report", "mail", every="1h")
    await client.schedules.pause("report", reason="holidays")
    await undo_last(client)
    assert not (await client.schedules.get("report")).paused


async def test_settings_are_undone_one_by_one(client: AsyncClient) -> None:
    """What was set beside them stays, and a later value of the same is not lost."""
    await client.queues.update("mail", QueueSettings(max_attempts=5, max_waiting=10))
    await client.queues.update("mail", max_attempts=9)
    first = await last(client)
    await client.queues.update("mail", max_waiting=20)
    await client.admin.undo(first.id)
    settings = (await client.queues.get("mail")).settings
    assert (settings.max_attempts, settings.max_waiting) == (5, 20)
    await client.queues.groups.update("mail", "acme", GroupSettings(concurrency=3))
    second = await last(client)
    await client.queues.groups.update("mail", "acme", GroupSettings(concurrency=4))
    with pytest.raises(ChangedSince, match="group acme of queue mail"):
        await client.admin.undo(second.id)
    await undo_last(client)
    await client.admin.undo(second.id)


async def test_limits_are_undone(client: AsyncClient) -> None:
    until = datetime.now(UTC) + timedelta(hours=1)
    await client.push("mail", b"x")
    await client.queues.limit("mail", until, reason="429")
    await undo_last(client)
    assert (await client.queues.get("mail")).limited_until is None
    await client.queues.groups.limit("mail", "acme", until)
    await undo_last(client)
    rate = RateLimit(rate=5, period=timedelta(seconds=1))
    await client.limiters.upsert("api", rate=rate)
    await client.limiters.upsert("api", concurrency=2)
    await undo_last(client)
    await client.limiters.empty("api", until, reason="429")
    await client.limiters.delete("api", reason="not used")
    await undo_last(client)
    limiter = await client.limiters.get("api")
    assert (limiter.rate, limiter.concurrency, limiter.limited_reason) == (rate, None, "429")
    await client.limiters.upsert("disk", concurrency=2)
    await undo_last(client)
    assert [each.name async for each in client.limiters.list()] == ["api"]


async def test_a_cancel_of_waiting_jobs_is_undone() -> None:
    """They wait again, each for its time; those that another call cancelled stay."""
    clock = ManualClock()
    async with running_server(clock=clock) as server, AsyncClient(server.address) as client:
        lot = await client.push_payloads("mail", [b"x"] * 600)
        later = await client.push("mail", b"later", delay=3_600)
        early = await client.push("mail", b"early")
        await client.jobs.cancel(early.id)
        clock.advance(1_000)
        [active] = await client.pull("mail")
        done = await client.jobs.cancel(queue="mail", reason="spam")
        assert (done.count, done.requested) == (600, 1)
        clock.advance(1_000)
        await client.jobs.cancel(lot.ids[5])
        undone = await client.admin.undo(done.operation_id, dry_run=True)
        assert (undone.count, undone.skipped) == (600, 0)
        undone = await client.admin.undo(done.operation_id)
        assert (undone.count, undone.skipped) == (600, 0)
        counts = (await client.queues.get("mail")).counts
        assert (counts.ready, counts.scheduled, counts.cancelled) == (599, 1, 1)
        waiting = await client.jobs.get(later.id)
        assert waiting.state is JobState.SCHEDULED
        assert (await client.jobs.get(active.id)).cancel_requested
        assert (await client.jobs.get(early.id)).state is JobState.CANCELLED
        server.advance(3_600_000)
        assert (await client.jobs.get(later.id)).state is JobState.READY


async def test_jobs_that_changed_since_are_left(server: RunningServer, client: AsyncClient) -> None:
    """Retried, deleted and cancelled again: they are not what the operation left."""
    jobs = await client.push_many("mail", [NewJob(b"x") for _ in range(4)])
    done = await client.jobs.cancel(*(job.id for job in jobs))
    await client.jobs.retry(jobs[0].id)
    await client.jobs.delete(jobs[1].id)
    await client.jobs.retry(jobs[2].id)
    server.advance(1)
    await client.jobs.cancel(jobs[2].id)
    undone = await client.admin.undo(done.operation_id)
    assert (undone.count, undone.skipped) == (1, 3)
    assert (await client.jobs.get(jobs[3].id)).state is JobState.READY


async def test_what_cannot_be_undone_says_why(client: AsyncClient) -> None:
    await client.push("mail", b"x")
    await client.queues.pause("mail")
    await client.queues.pause("mail")
    deleted = await client.jobs.delete(queue="mail")
    with pytest.raises(NotUndoable, match="the jobs that it deleted are gone"):
        await client.admin.undo(deleted.operation_id)
    nothing = await client.jobs.cancel(queue="mail")
    with pytest.raises(NotUndoable, match="cancelled no job"):
        await client.admin.undo(nothing.operation_id)
    verbs = [each async for each in client.admin.operations(verb="PauseQueue")]
    with pytest.raises(NotUndoable, match="changed nothing"):
        await client.admin.undo(verbs[0].id)
    with pytest.raises(OperationNotFound, match="nobody"):
        await client.admin.undo("nobody")


async def test_operations_outlive_a_stop_and_a_crash(tmp_path: Path) -> None:
    """Once a call is answered its operation is on disk, and so is what undoes it."""
    async with ServerProcess(tmp_path / "data") as server:
        ids: list[str] = []
        for kill in (True, False, True):
            async with AsyncClient(server.address) as client:
                await client.push_payloads("mail", [b"x"] * 50)
                ids.append((await client.jobs.cancel(queue="mail", reason="spam")).operation_id)
                if kill:
                    await server.kill()
                else:
                    await server.terminate()
            await server.start()
        async with AsyncClient(server.address) as client:
            found = [each async for each in client.admin.operations(queue="mail")]
            assert [each.id for each in found] == ids[::-1]
            for operation in found:
                assert (operation.count, operation.state) == (50, OperationState.DONE)
                assert (await client.admin.undo(operation.id)).count == 50
            await server.restart()
        async with AsyncClient(server.address) as client:
            assert all([(await one(client, each)).undone_by for each in ids])
            assert (await client.queues.get("mail")).counts.ready == 150


async def test_operations_on_the_command_line() -> None:
    def look() -> None:
        with running_server_in_thread() as server:
            runner = CliRunner(env={"JOBLINE_SERVER": server.address, "COLUMNS": "200"})

            def jobline(*words: str) -> str:
                result = runner.invoke(build(), [*words])
                assert result.exit_code == 0, result.output
                return result.stdout

            assert "No such operations" in runner.invoke(build(), ["audit"]).output
            jobline("limiter", "set", "api", "--concurrency", "2", "--reason", "too many")
            jobline("queue", "set", "mail", "max_attempts=7")
            shown = jobline("audit", "--since", "5m", "--verb", "UpsertLimiter")
            assert "too many" in shown
            assert "anonymous@127.0.0.1" in shown
            assert "UpdateQueue" not in shown
            [line] = [each for each in jobline("audit").splitlines() if "UpdateQueue" in each]
            operation = line.split()[0]
            assert "would be undone" in jobline("undo", operation, "--dry-run")
            assert f"operation {operation} undone" in jobline("undo", operation)
            assert "undone by" in jobline("audit", operation)
            jobline("schedule", "create", "report", "mail", "--every", "1h")
            jobline("schedule", "pause", "report", "--reason", "holidays")
            [line] = [each for each in jobline("audit").splitlines() if "PauseSchedule" in each]
            assert "report" in line
            jobline("undo", line.split()[0])
            assert "holidays" not in jobline("schedule", "get", "report")
            batch = jobline("batch", "create", "--json")
            number = str(json.loads(batch)["id"])
            jobline("batch", "cancel", number, "--yes", "--reason", "all is in")
            [line] = [each for each in jobline("audit").splitlines() if "CancelBatch" in each]
            assert number in line
            assert "all is in" in line
            failed = runner.invoke(build(), ["undo", operation])
            assert failed.exit_code != 0

    await asyncio.to_thread(look)
