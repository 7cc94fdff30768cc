"""The events of a batch."""

from __future__ import annotations

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine.commands import Push
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.timers import tick
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, JobOptions
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.watch.events import event_runs


def happened(runtime: Runtime) -> list[tuple[int, int]]:
    """Returns (kind, id) of every event since the last call."""
    shard = runtime.core.slots[0].shard
    shard.take_entries()
    return [
        (run.shared.kind, job_id)
        for run in event_runs(0, 0, shard.take_applied())
        for start, count in zip(run.starts, run.counts, strict=True)
        for job_id in range(start, start + count)
    ]


async def test_every_job_of_a_delayed_lot_is_told_to_be_ready(runtime: Runtime) -> None:
    """But those that were cancelled meanwhile."""
    shard, now = runtime.core.slots[0].shard, runtime.core.now()
    payloads = Payloads.of([b"1", b"2", b"3", b"4"])
    push = Push("mail", DEFAULT_OPTIONS, payloads=payloads, run_at_ms=now.wall_ms + 5)
    first_id = decide_push(shard, now, push).first_id
    decide_cancel(shard, now, [first_id + 1])
    happened(runtime)
    runtime.core.clock.advance(5)  # type: ignore[attr-defined]  # it is driven by hand
    tick(shard, runtime.core.now())
    ready = EventKind.EVENT_KIND_READY
    assert happened(runtime) == [(ready, first_id), (ready, first_id + 2), (ready, first_id + 3)]


async def test_small_pushes_at_the_same_time_are_one_run(runtime: Runtime) -> None:
    """Trial C3: a hundred calls that push a job each are one event run, however they are cut."""
    shard, now = runtime.core.slots[0].shard, runtime.core.now()
    for queue, name in [("mail", "a"), ("mail", "a"), ("mail", "b"), ("sms", "b"), ("sms", "b")]:
        push = Push(queue, JobOptions(name=name), payloads=Payloads.of([b"1", b"2"]))
        decide_push(shard, now, push)
    shard.take_entries()
    runs = event_runs(0, 0, shard.take_applied())
    pushed = [run for run in runs if run.shared.kind == EventKind.EVENT_KIND_PUSHED]
    assert [(run.shared.queue, run.shared.name, run.total) for run in pushed] == [
        ("mail", "a", 4),
        ("mail", "b", 2),
        ("sms", "b", 4),
    ]
    assert list(pushed[0].counts) == [2, 2]
