"""A runtime on real files with a manual clock, whose jobs end at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from jobline_server.background.retention import RetentionTask
from jobline_server.engine.commands import Pull, Push
from jobline_server.engine.entries import JobDied
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import (
    ENDED_STATES,
    NO_RETENTION,
    EndReason,
    JobOptions,
    JobState,
    QueueSettings,
    Retention,
)
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.ended.retention import EndedRetention
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit, JobFilter, Selection
from tests.unit.runtime.conftest import working

QUEUE = "mail"


class Keeping:
    """Ends jobs of a queue, and runs the retention task."""

    def __init__(self, runtime: Runtime, clock: ManualClock) -> None:
        self.runtime = runtime
        self.clock = clock
        self.start_again()

    def start_again(self) -> None:
        """The task knows nothing of what it did before."""
        core = self.runtime.core
        self.task = RetentionTask(core, EndedRetention(core, self.runtime.ended))

    async def sets(self, queue: str = QUEUE, **retention: Any) -> None:
        """Sets the retention of a queue."""
        settings = QueueSettings(retention=Retention(**retention))
        await self.runtime.queues.update_queue(queue, settings, None, Audit())

    async def complete(self, jobs: int = 1, queue: str = QUEUE, **retention: Any) -> list[int]:
        """Pushes jobs together with this retention, and completes them."""
        first_id = await self._push(jobs, queue, Retention(**retention))
        leased = await self.runtime.pulls.pull(
            Pull(((queue, 1),), max_jobs=jobs, worker="w", accepts_runs=True)
        )
        (run,) = leased.runs
        ids = list(range(first_id, first_id + jobs))
        await self.runtime.settle_calls.ack(ids, [run.delivery] * jobs, {})
        return ids

    async def cancel(self, jobs: int = 1, queue: str = QUEUE, **retention: Any) -> list[int]:
        """Pushes jobs one by one with this retention, and cancels each."""
        ids = [await self._push(1, queue, Retention(**retention)) for _ in range(jobs)]
        for job_id in ids:
            selection = Selection(ids=(job_id,))
            await self.runtime.bulk.cancel_jobs(selection, dry_run=False, audit=Audit())
        return ids

    async def die(self, jobs: int = 1, queue: str = QUEUE) -> list[int]:
        """Pushes jobs one by one, leases each, and makes it DEAD."""
        core = self.runtime.core
        slot, ids = core.slots[0], []
        for _ in range(jobs):
            ids.append(await self._push(1, queue, NO_RETENTION))
            await self.runtime.pulls.pull(Pull(((queue, 1),), max_jobs=1, worker="w"))
            at_ms, reason = core.now().wall_ms, EndReason.EXPLICIT_FAIL
            slot.shard.emit(JobDied(at_ms, ids[-1], reason, None))
            core.after_decision(slot)
            await core.commits.wait()
        return ids

    async def retry(self, job_id: int) -> None:
        """Retries an ended job."""
        await self.runtime.bulk.retry_jobs(Selection(ids=(job_id,)), dry_run=False, audit=Audit())

    async def _push(self, jobs: int, queue: str, retention: Retention) -> int:
        options = JobOptions(retention=retention)
        push = Push(queue, options, payloads=Payloads.of([b"x"] * jobs))
        return (await self.runtime.pushes.push(push)).first_id

    async def after(self, milliseconds: int) -> dict[str, int]:
        """Advances the clock and runs the task once; returns its counts that are not 0."""
        self.clock.advance(milliseconds)
        counts = await self.task.run_once(self.clock.now())
        return {name: count for name, count in counts.items() if count}

    async def kept(self) -> dict[int, JobState]:
        """Returns all ended jobs that an operator can list; checks the counts of the queues."""
        ended = JobFilter(states=ENDED_STATES | {JobState.STALE})
        listed, _ = await self.runtime.jobs.list_jobs(
            ended, page_size=10_000, page_token="", include_payloads=False
        )
        counted: Counter[tuple[str, JobState]] = Counter()
        for slot in self.runtime.core.slots:
            for queue in slot.shard.queues.values():
                counted.update({(queue.name, state): n for state, n in queue.kept().items()})
        assert +counted == Counter((view.queue, view.state) for view in listed)
        assert all(n >= 0 for n in counted.values())
        return {view.id: view.state for view in listed}


@pytest.fixture
async def keeping(tmp_path: Path) -> AsyncIterator[Keeping]:
    """A runtime without jobs."""
    clock = ManualClock()
    async with working(tmp_path, clock) as runtime:
        yield Keeping(runtime, clock)
