"""Calls on many jobs by id, held against a dictionary: ids come in any order, and repeatedly."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from jobline_server.engine.commands import FailItem, Push, Refused
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    AckLevel,
    FailAction,
    JobError,
    JobState,
)
from jobline_server.runtime.calls.bulk import DELETABLE
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit, BulkResult, Selection
from tests.pushed_rows import NewJob, rows_of
from tests.unit.runtime.commits.test_commits import a_pull
from tests.unit.runtime.conftest import working

QUEUES = ("mail", "other")
ENDED = frozenset({JobState.COMPLETED, JobState.DEAD, JobState.CANCELLED})

# Indexes into all ids so far, and a few that never were.
picks = st.lists(st.integers(0, 24), min_size=2, max_size=30)
steps = st.one_of(
    st.tuples(st.just("push"), st.sampled_from(QUEUES), st.integers(1, 8), st.booleans()),
    st.tuples(st.just("work"), st.sampled_from(QUEUES), st.sampled_from(["ack", "die", "keep"])),
    st.tuples(st.sampled_from(["retry", "delete", "cancel"]), picks, st.booleans()),
)
# Jobs that ended in several rows of the file, with jobs between them that did not.
BEGIN = [
    ("push", "mail", 8, False),
    ("work", "mail", "ack"),
    ("push", "other", 6, True),
    ("work", "other", "die"),
]


class World:
    """A runtime, and what a dictionary says of its jobs."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.ids: list[int] = []
        self.states: dict[int, JobState] = {}
        self.delivered: dict[int, int] = {}

    async def push(self, queue: str, jobs: int, as_rows: bool) -> None:
        """A lot, or jobs that are objects of their own."""
        payloads = [b"%d" % (len(self.ids) + index) for index in range(jobs)]
        command = Push(queue, DEFAULT_OPTIONS, level=AckLevel.BUFFERED)
        if as_rows:
            command.rows = rows_of(NewJob(payload, DEFAULT_OPTIONS) for payload in payloads)
        else:
            command.payloads = Payloads.of(payloads)
        first_id = (await self.runtime.pushes.push(command)).first_id
        await self.runtime.core.commits.wait()
        self.ids += range(first_id, first_id + jobs)
        self.states.update(dict.fromkeys(range(first_id, first_id + jobs), JobState.READY))

    async def work(self, queue: str, then: str) -> None:
        """Pulls up to ten jobs, and settles every other one; no delivery is given twice."""
        leased = await a_pull(self.runtime, queue)
        leases = [(job.id, job.delivery) for job in leased.jobs]
        for run in leased.runs:
            leases += [(run.first_id + index, run.delivery) for index in range(len(run.payloads))]
        for job_id, delivery in leases:
            assert self.states[job_id] is JobState.READY
            assert delivery > self.delivered.get(job_id, 0)
            self.delivered[job_id] = delivery
            self.states[job_id] = JobState.ACTIVE
        settled = leases[::2]
        if not settled:
            return
        if then == "ack":
            await self.runtime.settle_calls.ack(
                [one for one, _ in settled], [d for _, d in settled], {}
            )
            self.states.update((one, JobState.COMPLETED) for one, _ in settled)
        elif then == "die":
            error = JobError(type="E", message="no")
            items = [FailItem(one, d, error, FailAction.DEAD, None) for one, d in settled]
            await self.runtime.settle_calls.fail(items)
            self.states.update((one, JobState.DEAD) for one, _ in settled)

    async def change(self, verb: str, picked: Sequence[int], dry_run: bool) -> None:
        """A call on many ids: each once, in whatever order, and what cannot be is skipped."""
        asked = tuple(self.ids[at] if at < len(self.ids) else 10**6 + at for at in picked)
        states = {one: self.states[one] for one in asked if one in self.states}
        if verb == "retry":
            done = {one for one, state in states.items() if state in ENDED}
        elif verb == "delete":
            done = {one for one, state in states.items() if state in DELETABLE}
        else:
            done = {one for one, state in states.items() if state not in ENDED}
        call = getattr(self.runtime.bulk, f"{verb}_jobs")
        result: BulkResult = await call(Selection(ids=asked), dry_run=dry_run, audit=Audit())
        assert result.count + result.requested == len(done)
        assert sorted(result.skipped_ids) == sorted(set(asked) - done)
        assert sorted(result.not_found_ids) == sorted(set(asked) - set(states))
        active = [one for one in done if states[one] is JobState.ACTIVE]
        assert result.requested == len(active)
        if not dry_run:
            for one in done:
                self._note(verb, one)

    def _note(self, verb: str, job_id: int) -> None:
        if verb == "delete":
            del self.states[job_id]
        elif verb == "retry":
            self.states[job_id] = JobState.READY
        elif self.states[job_id] is JobState.READY:
            self.states[job_id] = JobState.CANCELLED

    async def check(self) -> None:
        """Every job is where the dictionary has it, with its own payload."""
        for at, job_id in enumerate(self.ids):
            try:
                view = await self.runtime.jobs.get_job(job_id)
            except Refused:
                assert job_id not in self.states
                continue
            assert (view.id, view.state) == (job_id, self.states[job_id])
            assert view.payload == b"%d" % at


async def _played(script: Sequence[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with working(Path(directory), ManualClock()) as runtime:
            world = World(runtime)
            for step, *arguments in script:
                verb = getattr(world, step, None)
                await (verb(*arguments) if verb else world.change(step, *arguments))
            await world.check()
            assert not runtime.ended.damage.count()


@settings(max_examples=100)
@given(st.lists(steps, min_size=2, max_size=20))
def test_ids_in_any_order_and_repeated_are_each_handled_once(
    script: list[tuple[Any, ...]],
) -> None:
    """Trial E3: jobs are retried and deleted by ids in any order and repeatedly, none skipped in
    silence, none called damaged, and none handed out again under a delivery that it had.
    """
    asyncio.run(_played([*BEGIN, *script]))
