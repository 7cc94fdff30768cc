"""Settles of a stream's frames are confirmed after their commit, or the stream fails."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from typing import Any

import pytest

from jobline_server.dispatch.frames import Confirm, Open, Settle, Worker, WorkerFrame
from jobline_server.dispatch.session import Phase, Session
from jobline_server.engine.commands import FailItem, RefusalKind, Refused
from jobline_server.engine.values import FailAction, JobError, JobState, SettleOutcome
from jobline_server.runtime.calls import settling as settling_module
from jobline_server.runtime.calls.confirms import Confirms
from jobline_server.runtime.calls.pull_dedup import leases_of, runs_of
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.slots import Answer
from tests.unit.runtime.calls.test_pulls import pulled, pushed
from tests.unit.runtime.calls.test_worker_stream import a_stream, confirmed
from tests.unit.runtime.commits.test_commits import a_moment

Lease = tuple[int, int]
NOT_FOUND, LEASE_LOST = SettleOutcome.NOT_FOUND, SettleOutcome.LEASE_LOST


class Confirming:
    """The confirms of one session, and how often it was told that some wait."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        now = runtime.core.now()
        opened = Open(Worker("w"), (("mail", 1),))
        self.session = Session(opened, "s", now, heartbeat_ms=3_600_000)
        self.ready = 0
        self.is_ready = asyncio.Event()
        self.confirms = Confirms(
            runtime.core, runtime.settling, self.session, ready=self._note_ready
        )

    def _note_ready(self) -> None:
        self.ready += 1
        self.is_ready.set()

    def handle(self, *settles: Settle) -> None:
        for _ in self.confirms.handle(settles):
            pass

    async def commit(self) -> None:
        await self.runtime.core.commits.commit_once()
        await a_moment()

    def sent(self) -> list[Confirm]:
        frame = self.session.frame_to_send(self.runtime.core.now())
        return [] if frame is None else frame.confirms

    async def leases(self, jobs: int) -> list[Lease]:
        """Leases of new jobs."""
        await pushed(self.runtime, rows=0, plain=jobs)
        leased = await pulled(self.runtime, b"", max_jobs=jobs)
        await self.commit()
        return list(leases_of(runs_of(leased)))


@pytest.fixture
def confirming(runtime: Runtime) -> Confirming:
    return Confirming(runtime)


def acks(seq: int, *leases: Lease) -> Settle:
    return Settle(seq, [job_id for job_id, _ in leases], [delivery for _, delivery in leases])


async def test_a_settle_is_confirmed_after_its_commit(confirming: Confirming) -> None:
    leases = await confirming.leases(2)
    confirming.handle(acks(1, *leases))
    await a_moment()
    assert (confirming.sent(), confirming.ready, confirming.confirms.pending) == ([], 0, 1)
    await confirming.commit()
    assert (confirming.sent(), confirming.ready) == ([Confirm(1, [], [])], 1)
    assert confirming.confirms.pending == 0


async def test_what_waits_is_counted_with_its_outcomes(confirming: Confirming) -> None:
    """A worker that does not read may leave only so much unread."""
    ((job_id, delivery), other) = await confirming.leases(2)
    fail = FailItem(job_id, delivery, JobError("E"), FailAction.DEAD)
    lost = other[0], 1
    confirming.handle(Settle(1, [lost[0]] * 3, [lost[1]] * 3, fails=[fail]), acks(2, other))
    assert confirming.confirms.pending == (1 + 3 + 1) + 1
    await confirming.commit()
    assert confirming.confirms.pending == 0
    lost_at = [(index, LEASE_LOST) for index in range(3)]
    assert confirming.sent() == [Confirm(1, lost_at, [3]), Confirm(2, [], [])]


async def test_a_settle_without_a_number_gets_no_reply(confirming: Confirming) -> None:
    """And keeps the stream from ending no longer than others."""
    confirming.handle(acks(0, *await confirming.leases(1)))
    await confirming.commit()
    assert (confirming.sent(), confirming.confirms.pending) == ([], 0)
    confirming.session.handle_half_close()
    assert confirming.session.is_over()


async def test_settles_that_the_ended_store_may_know_hold_up_no_others(
    confirming: Confirming, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are confirmed when it has answered."""
    (lease,) = await confirming.leases(1)
    goes_on, get_many = asyncio.Event(), confirming.runtime.ended.ended_store.get_many

    async def slowly(ids: Sequence[int]) -> Any:
        await goes_on.wait()
        return await get_many(ids)

    monkeypatch.setattr(confirming.runtime.ended.ended_store, "get_many", slowly)
    unknown = lease[0] + 100, 1
    confirming.handle(acks(1, unknown), acks(2, lease))
    await confirming.commit()
    assert (confirming.sent(), confirming.confirms.pending) == ([Confirm(2, [], [])], 2)
    confirming.is_ready.clear()
    goes_on.set()
    await confirming.is_ready.wait()
    assert confirming.sent() == [Confirm(1, [(0, NOT_FOUND)], [])]
    assert confirming.confirms.pending == 0


async def test_a_session_that_ended_gets_no_answer_to_what_is_left(
    confirming: Confirming, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker settles that again on its next stream."""
    monkeypatch.setattr(settling_module, "ACKS_AT_ONCE", 1)
    monkeypatch.setattr(settling_module, "SLICE_SECONDS", 0.0)
    first, second = await confirming.leases(2)
    steps = confirming.confirms.handle([acks(1, first), acks(2, second)])
    next(steps)
    confirming.session.phase = Phase.ENDED
    assert list(steps) == []
    await confirming.commit()
    states = [confirming.runtime.core.slots[0].shard.state_of(one[0]) for one in (first, second)]
    assert states == [None, JobState.ACTIVE]
    assert confirming.sent() == []


async def test_a_commit_that_failed_confirms_nothing(confirming: Confirming) -> None:
    """Silence would be taken for an answer: the stream is told that it has failed."""
    confirming.handle(acks(1, *await confirming.leases(1)))
    confirming.runtime.core.commits.fail(OSError("EIO"))
    assert confirming.runtime.failed.exception()
    await a_moment()
    assert (confirming.sent(), confirming.ready) == ([], 1)
    assert confirming.confirms.has_failed


@pytest.mark.parametrize(
    ("error", "is_logged"), [(Refused(RefusalKind.DATA_LOSS, "damaged"), False), (OSError(), True)]
)
async def test_an_ended_store_that_fails_fails_the_stream(
    confirming: Confirming,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    *,
    is_logged: bool,
) -> None:
    """A refusal is no mistake of the server's; anything else goes to the loop's handler."""
    logged: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: logged.append(told))

    async def fail(*_arguments: object, **_named: object) -> None:
        raise error

    monkeypatch.setattr(confirming.runtime.settles, "explain_missing", fail)
    (lease,) = await confirming.leases(1)
    confirming.handle(acks(1, (lease[0] + 100, 1)))
    await confirming.commit()
    gc.collect()
    assert (confirming.confirms.has_failed, confirming.ready > 0) == (True, True)
    assert (confirming.sent(), bool(logged)) == ([], is_logged)
    asyncio.get_running_loop().set_exception_handler(None)


async def test_the_settles_of_a_frame_share_one_wait(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial E2: each is confirmed by its number, however many there are."""
    stream, leases = await a_stream(runtime, jobs=50)
    answer = runtime.core.commits.resolve_after_commit
    waits: list[Sequence[Answer]] = []

    def counted(answers: Sequence[Answer]) -> None:
        waits.append(answers)
        answer(answers)

    monkeypatch.setattr(runtime.core.commits, "resolve_after_commit", counted)
    before = len(asyncio.all_tasks())
    settles = [Settle(seq, [job_id], [delivery]) for seq, (job_id, delivery) in enumerate(leases)]
    stream.receive(WorkerFrame(settles=settles))
    assert len(waits) == 1
    assert len(asyncio.all_tasks()) == before
    await runtime.core.commits.commit_once()
    frame = await stream.next_frame()
    assert frame is not None
    assert frame.confirms == [(seq, [], []) for seq in range(1, 50)]


async def test_a_settle_that_cannot_be_answered_ends_the_stream(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker would wait for good; so it comes back, and settles again."""
    stream, ((job_id, delivery),) = await a_stream(runtime)

    async def fail(*_arguments: object, **_named: object) -> None:
        raise OSError("the file cannot be read")

    monkeypatch.setattr(runtime.settles, "explain_missing", fail)
    # The failure itself goes to the loop's handler, which logs it.
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
    with pytest.raises(AssertionError, match="ended without a confirm"):
        await confirmed(runtime, stream, Settle(1, [job_id + 1], [delivery]))
