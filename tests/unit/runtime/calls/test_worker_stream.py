"""Streams that end or fail in an odd moment: nothing is lost by it, and nobody is left waiting."""

from __future__ import annotations

import pytest

from jobline_server.dispatch.frames import Open, Settle, Window, Worker, WorkerFrame
from jobline_server.engine.commands import ExtendItem, FailItem, Push, Refused, ReleaseItem
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.limits import LEASE_MS_DEFAULT
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    AckLevel,
    FailAction,
    JobError,
    JobState,
    SettleOutcome,
)
from jobline_server.runtime.calls import settling as settling_module
from jobline_server.runtime.calls import worker_stream as port_module
from jobline_server.runtime.calls.worker_stream import WorkerStream
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.commits.test_commits import a_push

Lease = tuple[int, int]


async def a_stream(runtime: Runtime, *, jobs: int = 1) -> tuple[WorkerStream, list[Lease]]:
    """A worker's stream, and the leases it was given."""
    payloads = Payloads.of([b"x"] * jobs)
    await runtime.pushes.push(
        Push("mail", DEFAULT_OPTIONS, payloads=payloads, level=AckLevel.BUFFERED)
    )
    await runtime.core.commits.commit_once()
    stream = runtime.streams.open_stream(Open(Worker("w"), (("mail", 1),)))
    stream.receive(WorkerFrame(window=Window(jobs)))
    assert await stream.next_frame() is not None
    stream.session.handle_written()
    return stream, held(stream)


def held(stream: WorkerStream) -> list[Lease]:
    return [lease for holder in stream.holders.values() for lease in holder.held()]


def lose_leases(runtime: Runtime) -> None:
    """Nobody was heard for a lease's time."""
    clock = runtime.core.clock
    assert isinstance(clock, ManualClock)
    clock.advance(LEASE_MS_DEFAULT + 2_000)
    runtime.timer_loop.run_due()


async def confirmed(
    runtime: Runtime, stream: WorkerStream, settle: Settle
) -> list[tuple[int, SettleOutcome]]:
    """What a settle is answered with."""
    stream.receive(WorkerFrame(settles=[settle]))
    await runtime.core.commits.commit_once()
    while (frame := await stream.next_frame()) is not None:
        for confirm in frame.confirms:
            if confirm.seq == settle.seq:
                return confirm.exceptions
    raise AssertionError("the stream ended without a confirm")


async def test_the_end_of_an_earlier_stream_takes_nothing_from_the_worker_that_is_back(
    runtime: Runtime,
) -> None:
    """It came back while its first connection broke; the old reader says goodbye after that."""
    earlier, leases = await a_stream(runtime)
    later = runtime.streams.open_stream(
        Open(Worker("w"), earlier.queues, session=earlier.session.session_id)
    )
    assert held(later) == leases
    earlier.half_close()
    with pytest.raises(Refused):
        await earlier.next_frame()
    assert held(later) == leases
    assert [holder.disconnected_ms for holder in later.holders.values()] == [None]


@pytest.mark.parametrize("how", ["breaks", "is ended", "is resumed on another"])
async def test_jobs_that_were_in_no_frame_when_the_stream_ends_go_on_at_once(
    runtime: Runtime, how: str
) -> None:
    """Trial A3: nobody has them, so nobody is waited for; those that were sent wait for their
    worker.
    """
    stream, sent = await a_stream(runtime, jobs=2)
    stream.receive(WorkerFrame(window=Window(4)))
    await runtime.pushes.push(a_push(b"unsent", b"unsent", level=AckLevel.BUFFERED))
    await runtime.core.commits.commit_once()
    assert len(held(stream)) == 4
    if how == "breaks":
        stream.disconnect()
    elif how == "is ended":
        stream.end()
        assert await stream.next_frame() is None
    else:
        again = Open(Worker("w"), stream.queues, session=stream.session.session_id)
        stream = runtime.streams.open_stream(again)
    assert held(stream) == sent
    queue = runtime.core.slots[0].shard.queues["mail"]
    assert (queue.counts[JobState.ACTIVE], queue.counts[JobState.READY]) == (2, 2)


async def test_a_frame_that_could_not_be_written_gives_its_jobs_back(runtime: Runtime) -> None:
    """Trial A3: the shell says which, as it writes a large one in parts."""
    stream, leases = await a_stream(runtime, jobs=3)
    stream.handle_unsent(leases[1:])
    stream.disconnect()
    assert held(stream) == leases[:1]


async def test_a_worker_that_was_silent_for_a_lease_gets_no_job_until_it_is_heard(
    runtime: Runtime,
) -> None:
    """Its connection may be dead: a job that came back from it would stall there again."""
    stream, (lease,) = await a_stream(runtime)
    lose_leases(runtime)
    await runtime.core.commits.commit_once()
    assert held(stream) == []
    stream.receive(WorkerFrame())
    (again,) = held(stream)
    assert again[0] == lease[0]
    assert again[1] > lease[1]


@pytest.mark.parametrize("is_back", [False, True], ids=["on its stream", "on another one"])
async def test_a_worker_that_is_heard_while_its_lost_lease_is_written_gets_jobs(
    runtime: Runtime, *, is_back: bool
) -> None:
    """It is told of the loss after the commit, and may have nothing to say for a long time then."""
    stream, (lease,) = await a_stream(runtime)
    lose_leases(runtime)
    if is_back:
        stream = runtime.streams.open_stream(
            Open(Worker("w"), stream.queues, session=stream.session.session_id)
        )
    stream.receive(WorkerFrame(window=Window(1)))
    await runtime.core.commits.commit_once()
    assert [job_id for job_id, _ in held(stream)] == [lease[0]]


async def test_a_settle_that_comes_again_is_told_so_whatever_it_was(runtime: Runtime) -> None:
    """An ack and a last fail are; a release of a job that is done is not the same again."""
    stream, leases = await a_stream(runtime, jobs=3)
    (acked, failed, released) = leases
    error = JobError(message="no such host")
    settle = Settle(
        1,
        [acked[0]],
        [acked[1]],
        fails=[FailItem(*failed, error, FailAction.DEAD)],
    )
    assert await confirmed(runtime, stream, settle) == []
    await confirmed(runtime, stream, Settle(2, [released[0]], [released[1]]))
    settle.seq = 3
    settle.releases = [ReleaseItem(*released)]
    again, lost = SettleOutcome.ALREADY_DONE, SettleOutcome.LEASE_LOST
    assert await confirmed(runtime, stream, settle) == [(0, again), (1, again), (2, lost)]


@pytest.mark.parametrize("when", ["after the loss", "before the loss"])
@pytest.mark.parametrize("settles", ["acks", "fails"])
async def test_a_first_settle_of_a_lost_lease_is_told_so_though_its_job_was_cancelled(
    runtime: Runtime, settles: str, when: str
) -> None:
    """Trial A8: it repeats nothing, so it is not ALREADY_DONE."""
    stream, ((job_id, delivery),) = await a_stream(runtime)
    if when == "before the loss":
        await cancel(runtime, job_id)
    lose_leases(runtime)
    if when == "after the loss":
        await cancel(runtime, job_id)
    await runtime.core.commits.commit_once()
    settle = Settle(1, [job_id], [delivery]) if settles == "acks" else Settle(1, [], [])
    if settles == "fails":
        settle.fails = [FailItem(job_id, delivery, JobError(message="too late"))]
    assert await confirmed(runtime, stream, settle) == [(0, SettleOutcome.LEASE_LOST)]


async def cancel(runtime: Runtime, job_id: int) -> None:
    """By hand; what is active is cancelled when its worker settles it, or loses it."""
    slot = runtime.core.slots[0]
    decide_cancel(slot.shard, runtime.core.now(), [job_id])
    runtime.core.after_decision(slot)


@pytest.mark.parametrize("what", ["acks", "fails", "releases", "extends"])
async def test_many_items_of_a_frame_are_taken_in_slices(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Trial C2: the loop goes on in between, and the answer is one."""
    for module in (settling_module, port_module):
        monkeypatch.setattr(module, "ITEMS_AT_ONCE", 10)
    monkeypatch.setattr(settling_module, "ACKS_AT_ONCE", 10)
    monkeypatch.setattr(settling_module, "SLICE_SECONDS", 0.0)
    stream, leases = await a_stream(runtime, jobs=25)
    leases[20] = leases[20][0], 1
    leases[:2] = leases[1::-1]
    error = JobError(message="no such host")
    ids, deliveries = [job_id for job_id, _ in leases], [delivery for _, delivery in leases]
    settle = Settle(
        1,
        ids if what == "acks" else [],
        deliveries if what == "acks" else [],
        fails=[FailItem(*lease, error) for lease in leases] if what == "fails" else [],
        releases=[ReleaseItem(*lease) for lease in leases] if what == "releases" else [],
    )
    extends = [ExtendItem(*lease) for lease in leases] if what == "extends" else []
    frame = WorkerFrame(settles=[] if extends else [settle], extends=extends)
    slices = [len(held(stream)) for _ in stream.receive_slices(frame)]
    assert slices == ([25, 25] if extends else [15, 5])
    if not extends:
        await runtime.core.commits.commit_once()
        answer = await stream.next_frame()
        while answer is not None and not answer.confirms:
            answer = await stream.next_frame()
        assert answer is not None
        assert answer.confirms == [(1, [(20, SettleOutcome.LEASE_LOST)], [])]


async def test_a_stream_that_ends_between_two_slices_settles_no_more(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial C2: its leases may be another stream's; the worker settles the rest again there."""
    monkeypatch.setattr(settling_module, "ITEMS_AT_ONCE", 10)
    monkeypatch.setattr(settling_module, "SLICE_SECONDS", 0.0)
    stream, leases = await a_stream(runtime, jobs=25)
    settle = Settle(1, fails=[FailItem(*lease, JobError()) for lease in leases])
    slices = stream.receive_slices(WorkerFrame(settles=[settle]))
    next(slices)
    stream.disconnect()
    assert list(slices) == []
    assert len(held(stream)) == 15
