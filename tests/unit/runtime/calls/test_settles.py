"""Which acks of a frame are decided as one."""

from __future__ import annotations

import pytest

from jobline_server.dispatch.frames import Settle, Window, WorkerFrame
from jobline_server.engine.commands import FailItem, Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import AckLevel, JobError, JobOptions
from jobline_server.runtime.calls import settling as settling_module
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.calls.test_worker_stream import a_stream, held


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten acks each, and an iteration of the loop after each."""
    monkeypatch.setattr(settling_module, "ACKS_AT_ONCE", 10)
    monkeypatch.setattr(settling_module, "SLICE_SECONDS", 0.0)


async def test_acks_in_order_are_decided_as_one(runtime: Runtime) -> None:
    """They cost little however many they are, and are one entry of the journal then."""
    stream, leases = await a_stream(runtime, jobs=25)
    ids, deliveries = [job_id for job_id, _ in leases], [delivery for _, delivery in leases]
    frame = WorkerFrame(settles=[Settle(1, ids, deliveries)])

    assert not list(stream.receive_slices(frame))
    assert not held(stream)


async def test_acks_in_order_of_many_lots_are_decided_in_slices(runtime: Runtime) -> None:
    """Trial C2: each costs a look-up then, and ten thousand took 182 ms."""
    stream, leases = await a_stream(runtime)
    stream.receive(WorkerFrame(window=Window(40)))
    for number in range(39):
        options = JobOptions(name=f"kind-{number}")
        payloads = Payloads.of([b"x"])
        await runtime.pushes.push(Push("mail", options, payloads=payloads, level=AckLevel.BUFFERED))
    await runtime.core.commits.commit_once()
    while len(leases) < 40:
        assert await stream.next_frame() is not None
        stream.session.handle_written()
        leases = held(stream)
    ids, deliveries = [job_id for job_id, _ in leases], [delivery for _, delivery in leases]
    assert ids == list(range(ids[0], ids[0] + 40))

    slices = [len(held(stream)) for _ in stream.receive_slices(settling(ids, deliveries))]

    assert slices == [30, 20, 10]


async def test_acks_of_other_deliveries_are_decided_in_slices(runtime: Runtime) -> None:
    """Trial C2: each is told by itself that its lease is lost."""
    stream, leases = await a_stream(runtime, jobs=25)
    ids, deliveries = [job_id for job_id, _ in leases], [delivery for _, delivery in leases]
    deliveries[::2] = [1] * 13
    assert len(list(stream.receive_slices(settling(ids, deliveries)))) == 2


def settling(ids: list[int], deliveries: list[int]) -> WorkerFrame:
    """A frame with one settle."""
    return WorkerFrame(settles=[Settle(1, ids, deliveries)])


async def test_fails_are_decided_in_smaller_slices_than_acks(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial C2: one of a thousand took 19 ms, and others of as many came right after."""
    monkeypatch.setattr(settling_module, "ITEMS_AT_ONCE", 5)
    stream, leases = await a_stream(runtime, jobs=10)
    fails = [FailItem(*lease, JobError()) for lease in leases]
    frame = WorkerFrame(settles=[Settle(1, fails=fails[:8])])
    assert [len(held(stream)) for _ in stream.receive_slices(frame)] == [5]
