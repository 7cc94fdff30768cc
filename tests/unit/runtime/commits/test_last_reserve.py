"""Calls that delete do not wait behind a commit that waits for room."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from jobline_server.engine.values import JobState
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit, JobFilter, Selection
from jobline_server.storage.space import NoSpace
from jobline_server.storage.store import DiskFull
from tests.unit.runtime.commits.test_commits import a_push

WHO = Audit(verb="DeleteSomething", principal="somebody")
ENDED = Selection(filter=JobFilter(queue="mail", states=frozenset({JobState.COMPLETED})))


class FullUntilLast(NoSpace):
    """A disk on which nothing can be written until the last of the reserve is given up."""

    def __init__(self) -> None:
        self.has_room = True
        self.given_up = False
        self.refused = asyncio.Event()

    def ballast_stands(self) -> bool:
        return self.has_room

    async def give_up_ballast(self, *, last: bool) -> bool:
        was_there, self.given_up = not self.given_up, self.given_up or last
        return last and was_there


@pytest.fixture
async def disk(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FullUntilLast]:
    """Full, with the commit loop running."""
    disk, commit, commits = FullUntilLast(), runtime.core.store.commit, runtime.core.commits

    async def full(*arguments: object) -> None:
        if not (disk.has_room or disk.given_up):
            disk.refused.set()
            raise DiskFull
        await commit(*arguments)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr(runtime.core.store, "commit", full)
    monkeypatch.setattr(commits, "_space", disk)
    monkeypatch.setattr("jobline_server.runtime.commits.commits.FULL_RETRY_SECONDS", 0)
    looping = asyncio.ensure_future(commits.run())
    # A queue that comes into being may take the reserve, as settings that keep fewer jobs may.
    await runtime.pushes.push(a_push(b"first"))
    disk.has_room = False
    yield disk
    disk.has_room = True
    commits.close()
    await looping


CALLS: dict[str, Callable[[Runtime], Awaitable[object]]] = {
    "jobs": lambda runtime: runtime.bulk.delete_jobs(ENDED, dry_run=False, audit=WHO),
    "a queue": lambda runtime: runtime.queues.delete_queue(
        "mail", force=True, dry_run=False, audit=WHO
    ),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_delete_does_not_wait_for_others_that_wait_for_room(
    runtime: Runtime, disk: FullUntilLast, name: str
) -> None:
    """Nor for the record of itself: it is what makes the room."""
    push = asyncio.ensure_future(runtime.pushes.push(a_push(b"x")))
    await disk.refused.wait()
    assert not disk.given_up
    async with asyncio.timeout(10):
        await CALLS[name](runtime)
        assert (await push).count == 1
    assert disk.given_up


async def test_others_leave_the_last_of_the_reserve(runtime: Runtime, disk: FullUntilLast) -> None:
    """Also when a delete was there before."""
    with runtime.core.commits.disk.making_room():
        pass
    push = asyncio.ensure_future(runtime.pushes.push(a_push(b"x")))
    await disk.refused.wait()
    disk.refused.clear()
    await disk.refused.wait()
    assert not push.done()
    assert not disk.given_up
    disk.has_room = True
    await push
