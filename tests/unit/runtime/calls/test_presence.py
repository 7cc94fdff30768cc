"""Workers that connect, that come back, and that are lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobline_server.dispatch.frames import Goaway, Open, Worker, WorkerFrame
from jobline_server.engine.limits import DISCONNECT_GRACE_MS, LEASE_MS_DEFAULT
from jobline_server.engine.server_notes import ServerNoteKind
from jobline_server.runtime.calls import presence as presence_module
from jobline_server.runtime.calls.server_notes import ServerNotes
from jobline_server.runtime.calls.worker_stream import WorkerStream
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.calls.test_worker_stream import a_stream
from tests.unit.runtime.conftest import opened

Note = tuple[str, str, str]


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[Note]:
    """What is noted: kind, worker, message."""
    found: list[Note] = []

    def add(_self: ServerNotes, kind: ServerNoteKind, worker: str, message: str) -> None:
        found.append((kind.name, worker, message))

    monkeypatch.setattr(ServerNotes, "add_worker", add)
    return found


def connect(runtime: Runtime, session: str = "", worker: str = "w") -> WorkerStream:
    queues = tuple((f"q{number}", 1) for number in range(7))
    opening = Open(Worker(worker, version="1.2"), queues, session=session)
    return runtime.streams.open_stream(opening)


def pass_time(runtime: Runtime, milliseconds: int) -> int:
    """Lets time pass; returns how many are lost then."""
    clock = runtime.core.clock
    assert isinstance(clock, ManualClock)
    clock.advance(milliseconds)
    runtime.timer_loop.run_due()
    return runtime.streams.presence.step()


async def test_a_worker_connects_and_is_lost(runtime: Runtime, noted: list[Note]) -> None:
    """Once the time that jobs wait for it is over, and once only."""
    connect(runtime).disconnect()
    assert noted == [
        ("WORKER_CONNECTED", "w", "version 1.2; queues q0, q1, q2, q3, q4 and 2 more"),
    ]
    assert pass_time(runtime, DISCONNECT_GRACE_MS - 1) == 0
    assert pass_time(runtime, 1) == 1
    assert noted[1:] == [("WORKER_LOST", "w", "version 1.2")]
    assert pass_time(runtime, 10 * DISCONNECT_GRACE_MS) == 0


async def test_a_worker_that_comes_back_was_never_away(runtime: Runtime, noted: list[Note]) -> None:
    """Without leases it gets a new session, in place of the one that it names."""
    first = connect(runtime)
    first.disconnect()
    second = connect(runtime, first.session_id)
    assert second.session_id != first.session_id
    # The server did not see yet that its connection broke.
    third = connect(runtime, second.session_id)
    assert third.session_id == second.session_id
    assert pass_time(runtime, 10 * DISCONNECT_GRACE_MS) == 0
    assert len(noted) == 1


async def test_a_worker_that_moves_because_it_is_told_is_not_lost(
    runtime: Runtime, noted: list[Note]
) -> None:
    stream = connect(runtime)
    stream.goaway(Goaway("old", runtime.core.wall_ms() + 1, retry_delay_ms=0))
    stream.disconnect()
    connect(runtime, stream.session_id)
    assert pass_time(runtime, 10 * DISCONNECT_GRACE_MS) == 0
    assert len(noted) == 1


async def test_a_worker_that_says_goodbye_is_not_lost(runtime: Runtime, noted: list[Note]) -> None:
    stream = connect(runtime)
    stream.receive(WorkerFrame(drain=True))
    stream.half_close()
    while await stream.next_frame() is not None:
        pass
    assert pass_time(runtime, 10 * DISCONNECT_GRACE_MS) == 0
    connect(runtime, stream.session_id)
    assert [kind for kind, *_ in noted] == ["WORKER_CONNECTED"] * 2


async def test_a_worker_is_lost_with_its_last_lease(tmp_path: Path, noted: list[Note]) -> None:
    """Not while a queue has its jobs wait for longer, also over a restart of the server."""
    clock = ManualClock()
    async with opened(tmp_path, clock) as runtime:
        await a_stream(runtime)
        await runtime.core.commits.commit_once()
    async with opened(tmp_path, clock) as runtime:
        assert pass_time(runtime, DISCONNECT_GRACE_MS + 1) == 0
        assert pass_time(runtime, LEASE_MS_DEFAULT + 2_000) == 1
        assert pass_time(runtime, DISCONNECT_GRACE_MS + LEASE_MS_DEFAULT) == 0
    assert [(kind, worker) for kind, worker, _ in noted] == [
        ("WORKER_CONNECTED", "w"),
        ("WORKER_LOST", "w"),
    ]


async def test_few_broken_sessions_are_remembered(
    runtime: Runtime, noted: list[Note], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of those that connect in a loop the oldest count as lost at once."""
    monkeypatch.setattr(presence_module, "BROKEN_MAX", 2)
    for number in range(4):
        connect(runtime, worker=f"w{number}").disconnect()
    assert [worker for kind, worker, _ in noted if kind == "WORKER_LOST"] == ["w0", "w1"]
    assert pass_time(runtime, DISCONNECT_GRACE_MS) == 2


async def test_no_worker_is_lost_by_a_stop(runtime: Runtime, noted: list[Note]) -> None:
    """The server ends their streams; they come back to it."""
    connect(runtime).disconnect()
    runtime.core.draining = True
    assert pass_time(runtime, DISCONNECT_GRACE_MS) == 0
    assert len(noted) == 1


async def test_a_look_at_nobody_does_not_wake_an_idle_server(runtime: Runtime) -> None:
    """The heartbeat rests while no lease and no stream counts on it."""
    heartbeat = runtime.core.heartbeat
    heartbeat.start()
    assert heartbeat.resting
    runtime.streams.presence.step()
    assert heartbeat.resting
    heartbeat.stop()
