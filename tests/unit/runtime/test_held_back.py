"""Jobs that may be handed out only once reach their consumer after the commit of their lease."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jobline_server.dispatch.frames import Open, Window, Worker, WorkerFrame
from jobline_server.engine.commands import Leased, Pull, Push, RefusalKind, Refused
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.limits import LEASE_MS_DEFAULT
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.rules import DeliveryMode, JobRules
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    AckLevel,
    EndReason,
    JobOptions,
    JobState,
)
from jobline_server.runtime.calls.pull_dedup import leases_of, runs_of
from jobline_server.runtime.calls.worker_stream import WorkerStream
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.health import Health
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.commits.test_commits import a_moment

ONCE = JobOptions(rules=JobRules(delivery_mode=DeliveryMode.ONCE))


async def pushed(
    runtime: Runtime, count: int, options: JobOptions = ONCE, level: AckLevel = AckLevel.BUFFERED
) -> None:
    payloads = Payloads.of([b"x"] * count)
    await runtime.pushes.push(Push("mail", options, payloads=payloads, level=level))
    await runtime.core.commits.commit_once()


def pulling(runtime: Runtime, **how: Any) -> asyncio.Task[Leased]:
    pull = Pull((("mail", 1),), max_jobs=10, accepts_runs=True, **how)
    return asyncio.ensure_future(runtime.pulls.pull(pull))


def counts(runtime: Runtime) -> tuple[int, int, int]:
    """Jobs that are ready, active and dead."""
    of_states = runtime.core.slots[0].shard.queues["mail"].counts
    return of_states[JobState.READY], of_states[JobState.ACTIVE], of_states[JobState.DEAD]


def a_stream(runtime: Runtime, session: str = "", window: int = 10) -> WorkerStream:
    stream = runtime.streams.open_stream(Open(Worker("w"), (("mail", 1),), session=session))
    stream.receive(WorkerFrame(window=Window(window)))
    return stream


async def sent(stream: WorkerStream) -> Leased:
    """The jobs in the frame that is sent next."""
    frame = await stream.next_frame()
    assert frame is not None
    stream.session.handle_written()
    return Leased.of([item for leased in frame.leased for item in leased.items()])


def advance(runtime: Runtime, ms: int) -> None:
    clock = runtime.core.clock
    assert isinstance(clock, ManualClock)
    clock.advance(ms)
    runtime.timer_loop.run_due()


async def test_g7_a_pull_is_answered_after_the_commit_of_its_leases(runtime: Runtime) -> None:
    """Also one that does not wait for jobs; a lot stays a run."""
    await pushed(runtime, 3)
    pull = pulling(runtime)
    await a_moment()
    assert not pull.done()
    await runtime.core.commits.commit_once()
    (run,) = (await pull).runs
    assert (run.count(), run.is_once) == (3, True)


async def test_g7_a_stream_is_sent_them_after_the_commit_and_others_at_once(
    runtime: Runtime,
) -> None:
    """A worker need not wait for what it may have again."""
    await pushed(runtime, 1)
    await pushed(runtime, 2, DEFAULT_OPTIONS)
    stream = a_stream(runtime)
    assert (await sent(stream)).count() == 2
    assert stream.in_flight.jobs == 3
    await runtime.core.commits.commit_once()
    (job,) = (await sent(stream)).runs
    assert job.is_once


async def test_a_pull_that_waits_gets_them_when_they_come(runtime: Runtime) -> None:
    """The commit that makes them ready is not the one of their lease."""
    pull = pulling(runtime, wait_ms=20_000)
    await a_moment()
    await pushed(runtime, 2)
    await a_moment()
    assert (counts(runtime), pull.done()) == ((0, 2, 0), False)
    await runtime.core.commits.commit_once()
    assert (await pull).count() == 2


async def test_jobs_that_are_never_written_need_no_commit(runtime: Runtime) -> None:
    """They go with the process, and so does their lease."""
    await pushed(runtime, 2, level=AckLevel.MEMORY)
    assert (await pulling(runtime)).count() == 2


@pytest.mark.parametrize("how", ["breaks", "says goodbye", "is resumed"])
async def test_g7_a_stream_that_ends_before_the_commit_never_had_them(
    runtime: Runtime, how: str
) -> None:
    """They go on at once, and it costs them nothing."""
    await pushed(runtime, 3)
    stream = a_stream(runtime)
    if how == "breaks":
        stream.disconnect()
    elif how == "says goodbye":
        await stream.next_frame()
        stream.half_close()
        assert await stream.next_frame() is None
    else:
        a_stream(runtime, stream.session.session_id, window=0)
    assert counts(runtime) == (3, 0, 0)
    await runtime.core.commits.commit_once()
    assert counts(runtime) == (3, 0, 0)
    job = await runtime.jobs.get_job(next(iter(runtime.core.slots[0].shard.jobs)))
    assert (job.attempts, job.stalls, job.releases) == (0, 0, 0)


async def test_g7_a_pull_that_is_cancelled_before_the_commit_never_had_them(
    runtime: Runtime,
) -> None:
    """Its caller is gone."""
    await pushed(runtime, 3)
    pull = pulling(runtime)
    await a_moment()
    pull.cancel()
    await a_moment()
    assert counts(runtime) == (3, 0, 0)


async def test_g7_after_the_commit_a_worker_that_says_goodbye_has_ended_them(
    runtime: Runtime,
) -> None:
    """It may have begun, and tells nobody how it went."""
    await pushed(runtime, 2)
    await pushed(runtime, 1, DEFAULT_OPTIONS)
    stream = a_stream(runtime)
    await runtime.core.commits.commit_once()
    await sent(stream)
    stream.half_close()
    while await stream.next_frame() is not None:
        pass
    assert counts(runtime) == (1, 0, 2)


async def test_g7_what_was_in_no_frame_yet_is_given_back_at_a_goodbye(runtime: Runtime) -> None:
    """Its commit is done, and still nobody has it."""
    await pushed(runtime, 2)
    stream = a_stream(runtime)
    await runtime.core.commits.commit_once()
    stream.disconnect()
    assert counts(runtime) == (2, 0, 0)


async def test_g7_a_message_that_broke_while_it_was_written_may_have_arrived(
    runtime: Runtime,
) -> None:
    """Its jobs wait for the worker to return, and end if it does not."""
    await pushed(runtime, 1)
    await pushed(runtime, 1, DEFAULT_OPTIONS)
    stream = a_stream(runtime)
    await runtime.core.commits.commit_once()
    await sent(stream)
    leases = [lease for holder in stream.holders.values() for lease in holder.held()]
    stream.handle_doubtful(leases)
    stream.disconnect()
    assert counts(runtime) == (1, 1, 0)
    advance(runtime, LEASE_MS_DEFAULT + 2_000)
    assert counts(runtime) == (1, 0, 1)


async def test_g7_a_reply_that_may_have_arrived_is_for_a_repeat_of_its_call(
    runtime: Runtime,
) -> None:
    """The same leases, and for no other caller."""
    await pushed(runtime, 2)
    call = Pull((("mail", 1),), max_jobs=10, request_id=b"r")
    pull = asyncio.ensure_future(runtime.pulls.pull(call))
    await a_moment()
    await runtime.core.commits.commit_once()
    leased = await pull
    runtime.pulls.untaken(call, leased)
    assert (await pulling(runtime)).count() == 0
    again = await runtime.pulls.pull(call)
    assert sorted(leases_of(runs_of(again))) == sorted(leases_of(runs_of(leased)))
    runtime.pulls.untaken(call, again)
    assert (await runtime.pulls.pull(call)).count() == 2


async def test_a_lease_begins_when_its_commit_is_done(runtime: Runtime) -> None:
    """The disk was full for longer than a lease."""
    await pushed(runtime, 1)
    pull = pulling(runtime)
    await a_moment()
    advance(runtime, 3 * LEASE_MS_DEFAULT)
    assert counts(runtime) == (0, 1, 0)
    await runtime.core.commits.commit_once()
    assert (await pull).count() == 1
    advance(runtime, LEASE_MS_DEFAULT - 2_000)
    assert counts(runtime) == (0, 1, 0)
    advance(runtime, 4_000)
    assert counts(runtime) == (0, 0, 1)


async def test_g7_a_shard_that_is_lost_before_the_commit_hands_out_nothing(
    runtime: Runtime,
) -> None:
    """Its lease is not on disk: another process may hand the job out."""
    await pushed(runtime, 2)
    stream, pull = a_stream(runtime, window=1), pulling(runtime)
    await a_moment()
    assert (len(stream.held_back), counts(runtime)) == (1, (0, 2, 0))
    slot = runtime.core.slots[0]
    runtime.core.slots.close(slot, Health.FENCED, "another process has it")
    with pytest.raises(Refused) as refusal:
        await pull
    assert refusal.value.kind is RefusalKind.SHARD_UNAVAILABLE
    assert (stream.held_back, list(slot.held_back)) == ([], [])


async def test_a_cancel_before_the_commit_reaches_the_worker_after_its_job(
    runtime: Runtime,
) -> None:
    """In the same frame, or it would ask to stop what has not begun."""
    await pushed(runtime, 1)
    stream = a_stream(runtime)
    slot = runtime.core.slots[0]
    (lot,) = slot.shard.lots.lots.values()
    decide_cancel(slot.shard, runtime.core.now(), [lot.first_id])
    runtime.core.after_decision(slot)
    await runtime.core.commits.commit_once()
    frame = await stream.next_frame()
    assert frame is not None
    assert [leased.count() for leased in frame.leased] == [1]
    assert [job_id for job_id, *_ in frame.revokes] == [lot.first_id]


async def test_g7_a_death_by_interruption_says_so(runtime: Runtime) -> None:
    """In the dead letters."""
    await pushed(runtime, 1)
    pull = pulling(runtime)
    await a_moment()
    await runtime.core.commits.commit_once()
    ((job_id, _),) = leases_of(runs_of(await pull))
    advance(runtime, LEASE_MS_DEFAULT + 2_000)
    await runtime.core.commits.commit_once()
    job = await runtime.jobs.get_job(job_id)
    assert (job.state, job.reason) == (JobState.DEAD, EndReason.INTERRUPTED)
