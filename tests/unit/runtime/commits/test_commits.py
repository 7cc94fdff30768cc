"""The order of a turn: nothing is heard of before it is on disk, and nothing is forgotten."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from jobline_server.engine.commands import Leased, Pull, Push, Refused
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobState
from jobline_server.runtime.runtime import Runtime
from jobline_server.storage.store import CommitUnknown, DiskFull


def a_push(*payloads: bytes, level: AckLevel | None = None) -> Push:
    return Push("mail", DEFAULT_OPTIONS, payloads=Payloads.of(payloads), level=level)


def a_pull(
    runtime: Runtime, queue: str = "mail", *, wait_ms: int = 0, max_jobs: int = 10
) -> asyncio.Task[Leased]:
    pull = runtime.pulls.pull(
        Pull(((queue, 1),), max_jobs=max_jobs, wait_ms=wait_ms, worker="w", accepts_runs=True)
    )
    return asyncio.ensure_future(pull)


async def a_moment() -> None:
    """Lets every task run that can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_push_is_answered_only_after_its_commit(runtime: Runtime) -> None:
    """FSYNCED waits; BUFFERED does not. Predecessors: the setting that was to make pushes durable
    waited for nothing.
    """
    waits = asyncio.ensure_future(runtime.pushes.push(a_push(b"x")))
    at_once = asyncio.ensure_future(runtime.pushes.push(a_push(b"y", level=AckLevel.BUFFERED)))
    await a_moment()
    assert (waits.done(), at_once.done()) == (False, True)
    await runtime.core.commits.commit_once()
    await a_moment()
    assert waits.done()


async def test_a_job_is_not_handed_out_before_its_push_is_on_disk(runtime: Runtime) -> None:
    """A long poll is served by the commit itself."""
    pull = a_pull(runtime, wait_ms=20_000)
    push = asyncio.ensure_future(runtime.pushes.push(a_push(b"x")))
    await a_moment()
    assert not pull.done()
    await runtime.core.commits.commit_once()
    assert (await pull).count() == 1
    await push


async def test_a_push_made_while_a_commit_flies_is_handed_out_by_the_next(
    runtime: Runtime,
) -> None:
    """Its queue was looked at when it could not go yet: it is looked at again."""
    await runtime.pushes.push(a_push(b"volatile", level=AckLevel.MEMORY))
    await a_pull(runtime)
    later = a_pull(runtime, wait_ms=20_000)
    await a_moment()
    await runtime.pushes.push(a_push(b"x", level=AckLevel.BUFFERED))
    commit = asyncio.ensure_future(runtime.core.commits.commit_once())
    await a_moment()
    second = a_pull(runtime, wait_ms=20_000)
    await a_moment()
    await runtime.pushes.push(a_push(b"y", level=AckLevel.BUFFERED))
    await commit
    await runtime.core.commits.commit_once()
    assert [(await task).count() for task in (later, second)] == [1, 1]


async def test_who_comes_while_a_job_is_being_written_is_given_it_afterwards(
    runtime: Runtime,
) -> None:
    """Nobody waited when its queue was looked at, and it could not go yet when somebody came."""
    await runtime.pushes.push(replace(a_push(b"x"), queue="other", level=AckLevel.BUFFERED))
    commit = asyncio.ensure_future(runtime.core.commits.commit_once())
    await a_moment()
    await runtime.pushes.push(a_push(b"y", level=AckLevel.BUFFERED))
    await commit
    pull = a_pull(runtime, wait_ms=20_000)
    await a_moment()
    assert not pull.done()
    await runtime.core.commits.commit_once()
    await a_moment()
    assert pull.done()
    assert (await pull).count() == 1


async def test_a_retry_of_a_push_that_is_being_committed_waits_for_that_commit(
    runtime: Runtime,
) -> None:
    """It stores nothing, but must not be told of a job that may still be lost."""
    command = a_push(b"x")
    command.request_id = b"r"
    first = asyncio.ensure_future(runtime.pushes.push(command))
    await a_moment()
    again = asyncio.ensure_future(runtime.pushes.push(command))
    await a_moment()
    assert not again.done()
    await runtime.core.commits.commit_once()
    assert (await first).first_id == (await again).first_id


async def test_a_failed_commit_answers_nobody_with_success(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is on disk is unknown: the loop ends, and later calls are refused. Predecessors: one
    write error dropped a batch of up to 5,000 jobs, and the server went on.
    """

    async def fail(*_arguments: object) -> None:
        raise CommitUnknown("EIO")

    monkeypatch.setattr(runtime.core.store, "commit", fail)
    push = asyncio.ensure_future(runtime.pushes.push(a_push(b"x")))
    await runtime.core.commits.run()
    with pytest.raises(Refused, match="the server stops"):
        await push
    assert isinstance(runtime.failed.exception(), CommitUnknown)
    with pytest.raises(Refused, match="the server stops"):
        await runtime.pushes.push(a_push(b"y"))


async def test_a_full_disk_refuses_pushes_and_keeps_what_it_was_told(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same rows are written when there is room; nothing is undone."""
    commit, tried = runtime.core.store.commit, asyncio.Event()
    room = False

    async def full(*arguments: object) -> None:
        tried.set()
        if not room:
            raise DiskFull
        await commit(*arguments)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr(runtime.core.store, "commit", full)
    monkeypatch.setattr("jobline_server.runtime.commits.commits.FULL_RETRY_SECONDS", 0)
    push = asyncio.ensure_future(runtime.pushes.push(a_push(b"x")))
    looping = asyncio.ensure_future(runtime.core.commits.run())
    await tried.wait()
    await a_moment()
    with pytest.raises(Refused, match="disk is full"):
        await runtime.pushes.push(a_push(b"y"))
    room = True
    assert (await push).count == 1
    runtime.core.commits.close()
    await looping


async def test_a_reader_that_is_cancelled_takes_no_ended_job_along(runtime: Runtime) -> None:
    """What was taken from the buffer is written, whoever asked for it."""
    pushed = await runtime.pushes.push(a_push(b"x", level=AckLevel.BUFFERED))
    await runtime.core.commits.commit_once()
    (run,) = (await a_pull(runtime)).runs
    ack = asyncio.ensure_future(runtime.settle_calls.ack([run.first_id], [run.delivery], {}))
    await a_moment()
    await runtime.core.commits.commit_once()
    await ack
    reader = asyncio.ensure_future(runtime.jobs.get_job(pushed.first_id))
    await asyncio.sleep(0)
    reader.cancel()
    await a_moment()
    assert (await runtime.jobs.get_job(pushed.first_id)).state is JobState.COMPLETED
