"""Who may take a session up, and when a stream ends that was told to move."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from jobline_server.dispatch.frames import Goaway, Open, Settle, Window, Worker, WorkerFrame
from jobline_server.dispatch.session import Phase
from jobline_server.engine import limits
from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.limits import DISCONNECT_GRACE_MS
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel
from jobline_server.runtime import pace
from jobline_server.runtime.calls.streams import GOAWAY_MS, shown_name
from jobline_server.runtime.calls.worker_stream import WorkerStream
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.calls.test_worker_stream import Lease, a_stream, held
from tests.unit.runtime.conftest import opened as opened_at

HOUR_MS = 3_600_000


def clock_of(runtime: Runtime) -> ManualClock:
    clock = runtime.core.clock
    assert isinstance(clock, ManualClock)
    return clock


def opened(runtime: Runtime, session: str = "") -> WorkerStream:
    return runtime.streams.open_stream(Open(Worker("w"), (("mail", 1),), session=session))


async def answer(stream: WorkerStream) -> tuple[str, bool]:
    """The session, and whether it was resumed."""
    frame = await stream.next_frame()
    assert frame is not None
    assert frame.opened is not None
    return frame.opened.session, frame.opened.resumed


@pytest.mark.parametrize("is_broken", [False, True], ids=["connected", "broken"])
async def test_a_session_that_the_server_did_not_give_is_not_taken(
    runtime: Runtime, *, is_broken: bool
) -> None:
    """Trial A5: neither a name of the client's own, nor what operators are shown of one."""
    stream, leases = await a_stream(runtime)
    if is_broken:
        stream.disconnect()
    for name in ("mine", shown_name(stream.session.session_id)):
        session, resumed = await answer(opened(runtime, name))
        assert shown_name(session) not in {name, shown_name(stream.session.session_id)}
        assert not resumed
    assert held(stream) == leases


async def test_a_session_outlives_a_restart(tmp_path: Path) -> None:
    """Trial A5: the server knows it by the leases that it holds."""
    async with opened_at(tmp_path, ManualClock()) as runtime:
        stream, leases = await a_stream(runtime)
        await runtime.core.commits.commit_once()
    async with opened_at(tmp_path, ManualClock()) as runtime:
        again = opened(runtime, stream.session.session_id)
        assert await answer(again) == (stream.session.session_id, True)
        assert held(again) == leases


async def test_a_session_that_has_expired_gets_a_new_id(runtime: Runtime) -> None:
    """Trial A5: its leases are over, and so is its name."""
    stream, _ = await a_stream(runtime)
    stream.disconnect()
    clock_of(runtime).advance(DISCONNECT_GRACE_MS + 2_000)
    runtime.timer_loop.run_due()
    session, resumed = await answer(opened(runtime, stream.session.session_id))
    assert session != stream.session.session_id
    assert not resumed


async def test_the_older_of_two_streams_of_a_session_ends_with_a_reason(runtime: Runtime) -> None:
    """Trial A5: the leases are the newer one's, and what the older still says changes nothing."""
    older, leases = await a_stream(runtime)
    newer = opened(runtime, older.session.session_id)
    assert await answer(newer) == (older.session.session_id, True)
    with pytest.raises(Refused) as refused:
        await older.next_frame()
    assert refused.value.kind is RefusalKind.SESSION_TAKEN
    ((job_id, delivery),) = leases
    older.receive(WorkerFrame(settles=[Settle(1, [job_id], [delivery])], window=Window(9)))
    clock_of(runtime).advance(1_000)
    older.receive(WorkerFrame())
    older.disconnect()
    assert held(newer) == leases
    (holder,) = newer.holders.values()
    assert holder.disconnected_ms is None
    assert holder.last_seen_ms == clock_of(runtime).mono_ms - 1_000
    assert runtime.streams.open == {older.session.session_id: newer}


@pytest.mark.parametrize("jump_ms", [-HOUR_MS, 0, HOUR_MS])
async def test_a_stream_ends_at_the_time_that_its_goaway_says(
    runtime: Runtime, jump_ms: int
) -> None:
    """Trial B5: its leases wait for its worker; a clock that is set meanwhile changes nothing."""
    stream, leases = await a_stream(runtime)
    clock = clock_of(runtime)
    runtime.streams.goaway_all(Goaway("moving", clock.wall_ms + 5_000, 0))
    assert await stream.next_frame() is not None
    clock.wall_ms += jump_ms
    clock.advance(4_999)
    stream.receive(WorkerFrame())
    assert not stream.session.is_time_up(clock.now())
    assert stream.session.next_deadline() == clock.mono_ms + 1
    clock.advance(1)
    async with asyncio.timeout(20):
        while await stream.next_frame() is not None:
            pass
    assert runtime.streams.open == {}
    assert held(stream) == leases
    session_id = stream.session.session_id
    assert await answer(opened(runtime, session_id)) == (session_id, True)


async def test_a_stream_whose_worker_does_not_read_ends_at_that_time_too(
    runtime: Runtime,
) -> None:
    """Trial B5: nobody asks for its next frame, as the one before is still on its way."""
    stream, leases = await a_stream(runtime)
    clock = clock_of(runtime)
    clock.advance(HOUR_MS)
    assert await runtime.streams.send_away_old(HOUR_MS // 2) == 1
    clock.advance(GOAWAY_MS)
    assert await runtime.streams.send_away_old(HOUR_MS // 2) == 0
    assert runtime.streams.open == {}
    assert held(stream) == leases


async def test_the_wall_clock_sends_no_stream_away(runtime: Runtime) -> None:
    """Trial B5: set an hour ahead it made every stream an old one at once."""
    await a_stream(runtime)
    clock = clock_of(runtime)
    clock.wall_ms += HOUR_MS
    assert await runtime.streams.send_away_old(HOUR_MS // 2) == 0
    clock.wall_ms -= 2 * HOUR_MS
    clock.advance(HOUR_MS)
    assert await runtime.streams.send_away_old(HOUR_MS // 2) == 1


async def test_many_old_streams_are_sent_away_over_several_turns_of_the_loop(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at thousands of streams is not one step; one that ends meanwhile is not asked."""
    monkeypatch.setattr(pace, "SLICE_SECONDS", 0.0)
    several = [opened(runtime) for _ in range(5)]
    clock_of(runtime).advance(HOUR_MS)
    task, turns = asyncio.create_task(runtime.streams.send_away_old(HOUR_MS // 2)), list[int]()
    while not task.done():
        await asyncio.sleep(0)
        turns.append(sum(one.session.phase is Phase.DRAINING for one in several) - sum(turns))
        if sum(turns) == 2:
            several[4].disconnect()
    assert (max(turns), await task) == (1, 4)


async def many_held(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> tuple[WorkerStream, list[Lease]]:
    """A session that is taken up with more leases than are listed in a step, and those."""
    monkeypatch.setattr(limits, "HELD_SLICE_LEASES", 10)
    rows = JobColumns([b"x"] * 50, [DEFAULT_OPTIONS] * 50)
    await runtime.pushes.push(Push("mail", DEFAULT_OPTIONS, rows=rows, level=AckLevel.BUFFERED))
    earlier, leases = await a_stream(runtime, jobs=50)
    earlier.disconnect()
    return opened(runtime, earlier.session.session_id), leases


async def test_many_leases_of_a_session_are_told_in_one_frame_and_listed_in_slices(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial C2: a hundred thousand were listed in one step. It gets no more jobs before that."""
    stream, leases = await many_held(runtime, monkeypatch)
    stream.receive(WorkerFrame(window=Window(jobs=100)))
    assert stream.in_flight.jobs == 50
    task, rounds = asyncio.ensure_future(stream.next_frame()), 0
    while not task.done():  # its rounds are counted
        await asyncio.sleep(0)
        rounds += 1
    frame = await task
    assert frame is not None
    assert frame.opened is not None
    assert rounds > 50 // 10
    told = zip(frame.opened.held_ids, frame.opened.held_deliveries, strict=True)
    assert (sorted(told), frame.opened.resumed) == (sorted(leases), True)
    assert stream.in_flight.jobs > 50, "and now it does"


async def test_a_session_may_be_taken_up_again_while_its_leases_are_listed(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial C2: the newest stream has them."""
    stream, leases = await many_held(runtime, monkeypatch)
    task = asyncio.ensure_future(stream.next_frame())
    await asyncio.sleep(0)
    newer = opened(runtime, stream.session.session_id)
    with pytest.raises(Refused, match="newer stream"):
        await task
    assert (await answer(newer))[1]
    assert sorted(held(newer)) == sorted(leases)
    assert newer.in_flight.jobs == 50
