"""Calls about many ids: few queries of the ended store, and a damaged row affects only its job."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobState, SettleOutcome
from jobline_server.runtime.calls import settling as settling_module
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit, Selection
from jobline_server.storage.ended_store import EndedLookup
from tests.unit.runtime.commits.test_commits import a_pull

JOBS = 5


class Queries:
    """Counts the queries of the ended store; reports the row of one job as damaged."""

    def __init__(self, runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.damaged = 0
        ended_store = runtime.ended.ended_store
        self._get_many = ended_store.get_many
        monkeypatch.setattr(ended_store, "get_many", self.get_many)

    async def get_many(self, job_ids: Sequence[int]) -> EndedLookup:
        self.count += 1
        look = await self._get_many(job_ids)
        bad = [self.damaged] if look.rows.pop(self.damaged, None) else []
        return EndedLookup(look.rows, bad, look.looked)


@pytest.fixture
def queries(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> Queries:
    return Queries(runtime, monkeypatch)


async def committed(runtime: Runtime, call: asyncio.Future[Any]) -> None:
    """Commits until a call is answered."""
    while not call.done():
        await asyncio.sleep(0)
        await runtime.core.commits.commit_once()


async def leased(runtime: Runtime) -> tuple[list[int], list[int]]:
    """Leases jobs; returns ids and deliveries."""
    payloads = Payloads.of([b"x"] * JOBS)
    await runtime.pushes.push(
        Push("mail", DEFAULT_OPTIONS, payloads=payloads, level=AckLevel.BUFFERED)
    )
    await runtime.core.commits.commit_once()
    (run,) = (await a_pull(runtime)).runs
    return list(range(run.first_id, run.first_id + JOBS)), [run.delivery] * JOBS


async def completed(runtime: Runtime) -> tuple[list[int], list[int]]:
    """Acks jobs; returns ids and deliveries."""
    ids, deliveries = await leased(runtime)
    ack = asyncio.ensure_future(runtime.settle_calls.ack(ids[:], deliveries, {}))
    await committed(runtime, ack)
    return ids, deliveries


async def test_a_wait_looks_up_what_ended_before_at_once(
    runtime: Runtime, queries: Queries
) -> None:
    """Unknown ids are not found."""
    ids, _ = await completed(runtime)
    asked = [*ids, ids[-1] + 100, (1 << 64) - 1]
    seen = {job_id: end async for part in runtime.waits.wait(asked, 10_000) for job_id, end in part}
    states = [None if end is None else end.state for end in map(seen.__getitem__, asked)]
    assert states == [JobState.COMPLETED] * JOBS + [None, None]
    assert queries.count == 1


async def test_a_wait_for_a_damaged_job_says_which_one_it_is(
    runtime: Runtime, queries: Queries
) -> None:
    ids, _ = await completed(runtime)
    queries.damaged = ids[2]
    with pytest.raises(Refused, match=f"job {ids[2]} is damaged") as refused:
        [part async for part in runtime.waits.wait(ids, 10_000)]
    assert refused.value.kind is RefusalKind.DATA_LOSS


async def test_a_damaged_job_is_no_bug_of_the_server(runtime: Runtime, queries: Queries) -> None:
    ids, _ = await completed(runtime)
    queries.damaged = ids[0]
    with pytest.raises(Refused) as refused:
        await runtime.jobs.get_job(ids[0])
    assert refused.value.kind is RefusalKind.DATA_LOSS


async def test_acks_that_come_again_are_explained_at_once(
    runtime: Runtime, queries: Queries
) -> None:
    """A lease on a job that cannot be read any more is over in any case."""
    ids, deliveries = await completed(runtime)
    queries.damaged = ids[1]
    deliveries[3] += 1
    exceptions = dict(await runtime.settle_calls.ack([*ids, ids[-1] + 100], [*deliveries, 1], {}))
    again, lost = SettleOutcome.ALREADY_DONE, SettleOutcome.LEASE_LOST
    expected = [again, lost, again, lost, again, SettleOutcome.NOT_FOUND]
    assert [exceptions[index] for index in range(JOBS + 1)] == expected
    assert queries.count == 1


@pytest.mark.parametrize("name", ["retry_jobs", "delete_jobs"])
async def test_operators_change_many_ended_jobs_at_once(
    runtime: Runtime, queries: Queries, name: str
) -> None:
    """A dry run returns the same; a job that cannot be read is skipped."""
    ids, _ = await completed(runtime)
    queries.damaged = ids[4]
    selection, change = Selection(ids=tuple(ids)), getattr(runtime.bulk, name)
    dry = await change(selection, dry_run=True, audit=Audit())
    call = asyncio.ensure_future(change(selection, dry_run=False, audit=Audit()))
    await committed(runtime, call)
    done = await call
    assert (dry.count, dry.skipped_ids) == (done.count, done.skipped_ids) == (4, [ids[4]])
    assert queries.count == 2


async def test_many_acks_are_decided_in_slices(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial C2: ten thousand small pushes that are acked in one call are not one step of the loop;
    the answer is one, each outcome at its place.
    """
    monkeypatch.setattr(settling_module, "ACKS_AT_ONCE", 2)
    monkeypatch.setattr(settling_module, "SLICE_SECONDS", 0.0)
    ids, deliveries = await leased(runtime)
    deliveries[3] += 1
    call = asyncio.ensure_future(runtime.settle_calls.ack(ids, deliveries, {}))
    queue = runtime.core.slots[0].shard.queues["mail"]
    active: list[int] = []
    while not call.done() and (not active or queue.counts[JobState.ACTIVE] > 1):
        await asyncio.sleep(0)
        active.append(queue.counts[JobState.ACTIVE])
    await committed(runtime, call)
    assert active == [3, 2, 1]
    assert call.result() == [(3, SettleOutcome.LEASE_LOST)]
