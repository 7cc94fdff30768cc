"""What became of jobs, looked up while others change them: the answer is right when it is given."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from jobline_server.engine.commands import Push, Pushed, RefusalKind, Refused
from jobline_server.engine.decide.outcomes import Outcomes, OutcomesNeeded, states_of
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, JobState
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.ended import outcomes as outcomes_module
from jobline_server.runtime.health import Health
from jobline_server.runtime.runtime import Runtime
from jobline_server.storage.ended_store import EndedLookup
from tests.unit.runtime.conftest import opened
from tests.unit.runtime.ended.ending_jobs import (
    ack,
    completed,
    delete,
    delete_queue,
    die,
    leased,
    make_stale,
    retry,
    retry_and_die,
)

COMPLETED, DEAD, READY = JobState.COMPLETED, JobState.DEAD, JobState.READY
ELSEWHERE = 1 << 43


class HeldReads:
    """Holds the first read of the ended store, before it is done or when it is, for `meanwhile`."""

    def __init__(self, runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
        self.meanwhile: list[Callable[[], Awaitable[object]]] = []
        self.when_done = False
        self.asked: list[Sequence[int]] = []
        self._get_many = runtime.ended.ended_store.get_many
        monkeypatch.setattr(runtime.ended.ended_store, "get_many", self.get_many)

    async def get_many(self, job_ids: Sequence[int]) -> EndedLookup:
        self.asked.append(list(job_ids))
        change = self.meanwhile.pop(0) if self.meanwhile else None
        found = await self._get_many(job_ids) if self.when_done else None
        if change is not None:
            await change()
        return found or await self._get_many(job_ids)


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    """Its commits go by themselves."""
    async with opened(tmp_path, ManualClock()) as one:
        committing = asyncio.ensure_future(one.core.commits.run())
        yield one
        one.core.commits.close()
        await committing


@pytest.fixture(params=[False, True], ids=["before the read", "after the read"])
def reads(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> HeldReads:
    held = HeldReads(runtime, monkeypatch)
    held.when_done = request.param
    return held


async def test_states_of_jobs_wherever_they_are(runtime: Runtime) -> None:
    """Waiting, in hand, ended long ago or just now, stale, and never pushed."""
    done = await completed(runtime)
    stale = await completed(runtime)
    await make_stale(runtime, stale)
    active, dead = await leased(runtime), await leased(runtime)
    pushed = await runtime.pushes.push(Push("later", DEFAULT_OPTIONS, payloads=Payloads.of([b"x"])))
    await die(runtime, dead)
    ids = [dead.id, ELSEWHERE, done, active.id, 99, stale, pushed.first_id, done]
    assert await runtime.outcomes.outcomes_of(ids) == {
        done: COMPLETED,
        stale: COMPLETED,
        active.id: JobState.ACTIVE,
        dead.id: DEAD,
        pushed.first_id: READY,
        ELSEWHERE: None,
        99: None,
    }


async def test_live_jobs_need_no_read(runtime: Runtime, reads: HeldReads) -> None:
    lease = await leased(runtime)
    assert await runtime.outcomes.outcomes_of([lease.id]) == {lease.id: JobState.ACTIVE}
    assert reads.asked == []


async def test_a_job_whose_end_is_being_committed_has_ended(
    runtime: Runtime, reads: HeldReads
) -> None:
    """It is not live any more, and in the file only after the commit."""
    lease = await leased(runtime)
    async with runtime.core.commits.exclusive:
        acked = asyncio.ensure_future(ack(runtime, lease))
        await asyncio.sleep(0)
        assert runtime.core.slots[0].shard.state_of(lease.id) is None
        looked = asyncio.ensure_future(runtime.outcomes.outcomes_of([lease.id]))
        for _ in range(3):
            await runtime.ended.find(lease.id)
        assert not looked.done()
        reads.asked.clear()
    assert await looked == {lease.id: COMPLETED}
    assert reads.asked == [[lease.id]]
    await acked


async def test_a_job_whose_retry_is_not_committed_is_live(
    runtime: Runtime, reads: HeldReads
) -> None:
    done = await completed(runtime)
    retries: list[asyncio.Future[None]] = []

    async def begin_retry() -> None:
        await runtime.core.commits.exclusive.acquire()
        retries.append(asyncio.ensure_future(retry(runtime, done)))
        while runtime.core.slots[0].shard.state_of(done) is None:  # noqa: ASYNC110  # a fact is no event
            await asyncio.sleep(0)

    reads.meanwhile.append(begin_retry)
    try:
        assert await runtime.outcomes.outcomes_of([done]) == {done: READY}
    finally:
        runtime.core.commits.exclusive.release()
    await retries[0]


async def test_a_job_that_ends_while_the_file_is_read_has_ended(
    runtime: Runtime, reads: HeldReads
) -> None:
    done, lease = await completed(runtime), await leased(runtime)
    reads.meanwhile.append(lambda: die(runtime, lease))
    found = await runtime.outcomes.outcomes_of([lease.id, done])
    assert found == {done: COMPLETED, lease.id: DEAD}
    assert reads.asked == [[done], [lease.id]]


@pytest.mark.parametrize(
    ("change", "state"),
    [
        (delete, None),
        (retry, READY),
        (retry_and_die, DEAD),
        (delete_queue, None),
        (make_stale, COMPLETED),
    ],
)
async def test_a_job_that_changes_while_the_file_is_read_is_read_again(
    runtime: Runtime,
    reads: HeldReads,
    change: Callable[[Runtime, int], Awaitable[None]],
    state: JobState | None,
) -> None:
    """Deleted, put back, put back and dead, gone with its queue, aged: and its neighbour is not."""
    done, other = await completed(runtime), await completed(runtime, "other")
    reads.meanwhile.append(lambda: change(runtime, done))
    found = await runtime.outcomes.outcomes_of([done, other])
    assert found == {done: state, other: COMPLETED}


async def test_only_what_changed_is_read_again(runtime: Runtime, reads: HeldReads) -> None:
    done, other = await completed(runtime), await completed(runtime)
    lease = await leased(runtime)
    reads.meanwhile.append(lambda: make_stale(runtime, done))
    await ack(runtime, lease)
    await runtime.outcomes.outcomes_of([done, other])
    assert reads.asked[0] == [done, other]
    assert reads.asked[-1] == [done]


async def test_jobs_that_change_without_end_are_given_up(
    runtime: Runtime, reads: HeldReads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No call may be kept for ever by others."""
    monkeypatch.setattr(outcomes_module, "LOOKS_MAX", 3)
    done = await completed(runtime)

    async def change() -> None:
        runtime.outcomes._looks[0]._changed.add(done)

    reads.meanwhile += [change] * 3
    with pytest.raises(Refused) as refused:
        await runtime.outcomes.outcomes_of([done])
    assert (refused.value.kind, refused.value.retry_after_ms) == (RefusalKind.SERVER_FULL, 100)
    assert runtime.outcomes._looks == []


async def test_a_damaged_job_is_refused(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    done = await completed(runtime)

    async def get_many(_ids: Sequence[int]) -> EndedLookup:
        return EndedLookup({}, [done], 1)

    monkeypatch.setattr(runtime.ended.ended_store, "get_many", get_many)
    with pytest.raises(Refused) as refused:
        await runtime.outcomes.outcomes_of([done])
    assert refused.value.kind is RefusalKind.DATA_LOSS


async def test_jobs_of_a_shard_that_is_lost_while_the_file_is_read_are_refused(
    runtime: Runtime, reads: HeldReads
) -> None:
    """Nobody here knows any more what becomes of them."""
    done = await completed(runtime)
    slots = runtime.core.slots

    async def lose() -> None:
        slots.close(slots[0], Health.FENCED, "another process has it")

    reads.meanwhile.append(lose)
    with pytest.raises(Refused) as refused:
        await runtime.outcomes.outcomes_of([done])
    assert refused.value.kind is RefusalKind.SHARD_UNAVAILABLE


async def test_more_ids_than_a_call_takes_are_a_mistake(runtime: Runtime) -> None:
    assert len(await runtime.outcomes.outcomes_of(range(2_000))) == 2_000
    with pytest.raises(ValueError, match="2001 ids, more than 2000"):
        await runtime.outcomes.outcomes_of(range(2_001))


# Deciding with what was looked up.


class DependentPush:
    """A push that is refused unless all jobs that it depends on completed or are live."""

    def __init__(self, runtime: Runtime, *parents: int) -> None:
        self.runtime = runtime
        self.parents = parents
        self.given: list[Outcomes] = []

    def __call__(self, known: Outcomes) -> Pushed:
        self.given.append(dict(known))
        core = self.runtime.core
        slot = core.slots.of_queue("next")
        states = states_of(slot.shard, self.parents, known)
        if not {*states.values()} <= {COMPLETED, READY, JobState.ACTIVE}:
            raise Refused(RefusalKind.WRONG_STATE, "a parent did not complete")
        command = Push("next", DEFAULT_OPTIONS, payloads=Payloads.of([b"x"]))
        pushed = decide_push(slot.shard, core.now(), command)
        core.after_decision(slot)
        return pushed


async def test_a_push_that_needs_no_outcome_is_decided_once(runtime: Runtime) -> None:
    push = DependentPush(runtime, (await leased(runtime)).id)
    assert (await runtime.outcomes.decide(push)).count == 1
    assert push.given == [{}]


async def test_a_push_is_decided_again_with_what_became_of_its_parents(runtime: Runtime) -> None:
    done, lease = await completed(runtime), await leased(runtime)
    push = DependentPush(runtime, done, lease.id)
    assert (await runtime.outcomes.decide(push)).count == 1
    assert push.given == [{}, {done: COMPLETED}]


async def test_a_refusal_is_that_of_the_last_decision(runtime: Runtime) -> None:
    lease = await leased(runtime)
    await die(runtime, lease)
    with pytest.raises(Refused) as refused:
        await runtime.outcomes.decide(DependentPush(runtime, lease.id))
    assert refused.value.kind is RefusalKind.WRONG_STATE
    assert "next" not in runtime.core.slots[0].shard.queues


async def test_a_parent_that_ends_while_another_is_looked_up_is_asked_for_next(
    runtime: Runtime, reads: HeldReads
) -> None:
    """And what was known before is looked up again: it was deleted since."""
    done, lease = await completed(runtime), await leased(runtime)
    reads.meanwhile.append(lambda: ack(runtime, lease))
    push = DependentPush(runtime, done, lease.id)
    assert (await runtime.outcomes.decide(push)).count == 1
    assert push.given == [{}, {done: COMPLETED}, {done: COMPLETED, lease.id: COMPLETED}]


async def test_a_decision_that_asks_without_end_is_given_up(runtime: Runtime) -> None:
    asked = iter(range(1_000))

    def decide(_known: Outcomes) -> None:
        raise OutcomesNeeded([next(asked)])

    with pytest.raises(Refused) as refused:
        await runtime.outcomes.decide(decide)
    assert refused.value.kind is RefusalKind.SERVER_FULL
