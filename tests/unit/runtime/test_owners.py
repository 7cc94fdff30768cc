"""Reserved jobs are offered to the session that they are for, and to all others once it is gone."""

from __future__ import annotations

import pytest

from jobline_server.dispatch.frames import Handler, Open, Settle, Window, Worker, WorkerFrame
from jobline_server.engine.commands import Push
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.limits import STICKY_MS
from jobline_server.engine.rules import JobRules
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import AckLevel, JobOptions
from jobline_server.runtime import dispatcher
from jobline_server.runtime.calls.worker_stream import WorkerStream
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.obstacles import ObstacleKind
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.calls.test_worker_stream import held

STICKY = JobOptions(rules=JobRules(sticky=True))


def stream_of(runtime: Runtime, worker: str, *names: str, jobs: int = 10) -> WorkerStream:
    """The stream of a worker with so much room, for jobs of these names, or of any."""
    handlers = tuple(Handler("q", name) for name in names)
    stream = runtime.streams.open_stream(Open(Worker(worker), (("q", 1),), handlers))
    stream.receive(WorkerFrame(window=Window(jobs)))
    return stream


async def push(runtime: Runtime, *groups: str, options: JobOptions = STICKY) -> int:
    """Pushes a job per group, and commits; returns the first id."""
    ties = [Ties(group) for group in groups]
    rows = JobColumns([b"x"] * len(groups), [options] * len(groups), ties=ties)
    command = Push("q", options, rows=rows, level=AckLevel.BUFFERED)
    first_id = (await runtime.pushes.push(command)).first_id
    await runtime.core.commits.commit_once()
    return first_id


async def settle(runtime: Runtime, stream: WorkerStream) -> None:
    """A worker acks all that it has, and reads what it is sent."""
    ids, deliveries = zip(*held(stream), strict=True)
    stream.receive(WorkerFrame(settles=[Settle(1, [*ids], [*deliveries])]))
    await runtime.core.commits.commit_once()
    await stream.next_frame()
    stream.session.handle_written()


async def had(runtime: Runtime, *groups: str, names: tuple[str, ...] = ()) -> WorkerStream:
    """A worker that has had a job of each of these groups."""
    stream = stream_of(runtime, "w1", *names)
    await push(runtime, *groups)
    await settle(runtime, stream)
    return stream


def pass_time(runtime: Runtime, ms: int) -> None:
    clock = runtime.core.clock
    assert isinstance(clock, ManualClock)
    runtime.timer_loop.run_due()
    clock.advance(ms)
    runtime.timer_loop.run_due()


async def test_reserved_job_goes_to_its_session_as_soon_as_it_is_on_disk(runtime: Runtime) -> None:
    """And not to the worker whose turn it is."""
    owner, other = await had(runtime, "a"), stream_of(runtime, "w2")
    for _ in range(3):
        job_id = await push(runtime, "a")
        assert [job for job, _ in held(owner)] == [job_id]
        assert held(other) == []
        await settle(runtime, owner)


async def test_session_without_room_takes_it_when_it_has_some(runtime: Runtime) -> None:
    """Until then the job says for whom it waits."""
    owner, other = await had(runtime, "a"), stream_of(runtime, "w2")
    owner.receive(WorkerFrame(window=Window(0)))
    job_id = await push(runtime, "a")
    _, obstacles = await runtime.explainer.explain_job(job_id)
    assert obstacles[0].kind is ObstacleKind.STICKY
    assert "worker w1, which had the last job" in obstacles[0].message
    owner.receive(WorkerFrame(window=Window(1)))
    assert ([job for job, _ in held(owner)], held(other)) == ([job_id], [])


async def test_after_five_seconds_without_room_another_worker_gets_it(runtime: Runtime) -> None:
    owner, other = await had(runtime, "a"), stream_of(runtime, "w2")
    owner.receive(WorkerFrame(window=Window(0)))
    job_id = await push(runtime, "a")
    pass_time(runtime, STICKY_MS)
    assert ([job for job, _ in held(other)], held(owner)) == ([job_id], [])


@pytest.mark.parametrize("how", ["drain", "break"])
async def test_worker_that_leaves_keeps_nothing_back(runtime: Runtime, how: str) -> None:
    """Neither what is reserved for it now, nor what would be."""
    owner, other = await had(runtime, "a", "b"), stream_of(runtime, "w2")
    owner.receive(WorkerFrame(window=Window(0)))
    first = await push(runtime, "a")
    assert held(other) == []
    if how == "drain":
        owner.receive(WorkerFrame(drain=True))
    else:
        owner.disconnect()
    runtime.timer_loop.run_due()
    second = await push(runtime, "b")
    runtime.timer_loop.run_due()
    assert [job for job, _ in held(other)] == [first, second]


async def test_session_that_does_not_handle_the_name_gets_nothing(runtime: Runtime) -> None:
    """Its group has jobs of several names."""
    owner, other = await had(runtime, "a", names=("",)), stream_of(runtime, "w2")
    mail = JobOptions(name="mail", rules=JobRules(sticky=True))
    job_id = await push(runtime, "a", options=mail)
    runtime.timer_loop.run_due()
    assert ([job for job, _ in held(other)], held(owner)) == ([job_id], [])


async def test_what_one_iteration_cannot_offer_the_next_one_does(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await had(runtime, "a")
    monkeypatch.setattr(dispatcher, "ITERATION_ITEMS", 0)
    job_id = await push(runtime, "a")
    assert held(owner) == []
    monkeypatch.undo()
    (slot,) = runtime.core.slots
    runtime.core.serve(slot)
    assert [job for job, _ in held(owner)] == [job_id]


async def test_late_end_of_an_earlier_stream_takes_nothing_from_the_session(
    runtime: Runtime,
) -> None:
    owner, other = await had(runtime, "a"), stream_of(runtime, "w2")
    session = owner.session.session_id
    later = runtime.streams.open_stream(Open(Worker("w1"), (("q", 1),), session=session))
    job_id = await push(runtime, "a")
    owner.half_close()
    runtime.dispatcher.leave(owner)
    runtime.timer_loop.run_due()
    assert held(other) == []
    later.receive(WorkerFrame(window=Window(1)))
    assert [job for job, _ in held(later)] == [job_id]


async def test_session_with_room_again_is_asked_though_others_like_it_find_nothing(
    runtime: Runtime,
) -> None:
    """It has no frame to send: another call settles its job. What wakes the queue is for nobody."""
    owner, other = await had(runtime, "a", "b"), stream_of(runtime, "w2")
    owner.receive(WorkerFrame(window=Window(1)))
    await push(runtime, "", options=JobOptions())
    await settle(runtime, owner)
    await push(runtime, "a")
    await owner.next_frame()
    owner.session.handle_written()
    job_id = await push(runtime, "b")
    [(first_id, delivery)] = held(owner)
    runtime.settles.ack([first_id], [delivery], {})
    await runtime.core.commits.commit_once()
    newest = JobOptions(rules=JobRules(min_worker_version="9"))
    await push(runtime, "c", options=newest)
    assert ([job for job, _ in held(owner)], held(other)) == ([job_id], [])
