"""Jobs that are given back on behalf of somebody who is gone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import Pull
from jobline_server.engine.values import JobState
from jobline_server.runtime.calls import returns
from jobline_server.runtime.calls.pull_dedup import leases_of, runs_of
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.calls.test_pulls import pushed


async def test_many_jobs_come_back_in_their_order_some_at_a_time(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial A3: each slice stands at the front, before those that came after it."""
    monkeypatch.setattr(returns, "ITEMS_AT_ONCE", 3)
    await pushed(runtime, rows=0, plain=10)
    pull = Pull((("mail", 1),), max_jobs=10)
    lost = list(leases_of(runs_of(await runtime.pulls.pull(pull))))
    runtime.returns.start(lost)
    queue = runtime.core.slots[0].shard.queues["mail"]
    assert queue.counts[JobState.ACTIVE] == 10
    await runtime.returns.finish()
    assert queue.counts[JobState.ACTIVE] == 0
    await runtime.core.commits.commit_once()
    again = await runtime.pulls.pull(pull)
    assert [job.id for job in again.jobs] == [job_id for job_id, _ in lost]


async def test_a_job_that_nobody_takes_does_not_die_of_it(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial A3: what the server gives back by itself is no release of a worker's."""
    monkeypatch.setattr(limits, "RELEASES_MAX", 2)
    await pushed(runtime, rows=1, plain=0)
    pull = Pull((("mail", 1),), max_jobs=1)
    for _ in range(5):
        (lost,) = leases_of(runs_of(await runtime.pulls.pull(pull)))
        runtime.returns.start([lost])
        await runtime.core.commits.commit_once()
    job = await runtime.jobs.get_job(lost[0])
    assert (job.state, job.releases) == (JobState.READY, 0)


async def test_leases_that_are_given_back_are_listed_some_at_a_time(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial C2: a stream that breaks with a hundred thousand unsent jobs is not one step of the
    loop, not even to list them.
    """
    monkeypatch.setattr(returns, "ITEMS_AT_ONCE", 3)
    listed: list[int] = []

    def leases() -> Iterator[tuple[int, int]]:
        for number in range(10):
            listed.append(number)
            yield number, 1

    runtime.returns.start(leases())
    assert len(listed) == 3
    await runtime.returns.finish()
    assert len(listed) == 10
