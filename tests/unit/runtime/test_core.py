"""From a decision to those it concerns: who is notified of a commit, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jobline_server.engine.commands import Pull, Push, RefusalKind, Refused
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.core import Core, Wants
from jobline_server.runtime.health import Health
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.slots import ShardSlot
from tests.unit.engine.gates_by_hand import close_gate
from tests.unit.runtime.commits.test_commits import a_moment, a_pull
from tests.unit.runtime.conftest import opened

MEMORY, BUFFERED = AckLevel.MEMORY, AckLevel.BUFFERED


def a_push(queue: str = "mail", *, level: AckLevel | None = None, run_at_ms: int = 0) -> Push:
    payloads = Payloads.of([b"x"])
    return Push(queue, DEFAULT_OPTIONS, payloads=payloads, run_at_ms=run_at_ms, level=level)


async def push(runtime: Runtime, queue: str = "mail", *, level: AckLevel = BUFFERED) -> int:
    """A job; one that is written waits for a commit."""
    return (await runtime.pushes.push(a_push(queue, level=level))).first_id


async def commit(runtime: Runtime) -> None:
    await runtime.core.commits.commit_once()


def fails(*_: object) -> Any:
    raise LookupError("a mistake of ours")


class Heard:
    """What a listener was notified of: for each time, whether each batch is a commit."""

    def __init__(self, core: Core, wants: Wants = Wants.COMMITS) -> None:
        self.batches: list[Sequence[CommittedBatch]] = []
        core.listen(f"heard {wants}", self.batches.append, wants)

    def commits(self) -> list[list[bool]]:
        return [[batch.is_commit for batch in batches] for batches in self.batches]


async def test_facts_are_heard_of_after_their_commit_and_those_of_memory_at_once(
    runtime: Runtime,
) -> None:
    heard = Heard(runtime.core)
    await push(runtime)
    assert heard.commits() == []
    await commit(runtime)
    assert heard.commits() == [[True]]
    await push(runtime, level=MEMORY)
    assert heard.commits() == [[True], [False]]
    offsets = [batch.offset for batches in heard.batches for batch in batches]
    assert offsets == [runtime.core.slots[0].shard.committed] * 2


async def test_hand_outs_of_jobs_in_memory_are_heard_of_soon_and_not_at_once(
    runtime: Runtime,
) -> None:
    """They happen while listeners are being notified."""
    await push(runtime)
    await commit(runtime)
    await push(runtime, level=MEMORY)
    slot, heard = runtime.core.slots[0], Heard(runtime.core)
    await runtime.pulls.pull(Pull((("mail", 1),), max_jobs=1))
    await commit(runtime)
    before = len(heard.batches)
    await runtime.pulls.pull(Pull((("mail", 1),), max_jobs=1))
    assert len(heard.batches) == before
    assert slot.shard.applied
    await asyncio.sleep(0)
    assert heard.commits()[before:] == [[False]]
    assert not slot.shard.applied


async def test_listeners_are_notified_of_what_they_want_in_the_order_in_which_they_came(
    runtime: Runtime,
) -> None:
    heard = {wants: Heard(runtime.core, wants) for wants in Wants}
    order: list[int] = []
    for number in (1, 2):
        runtime.core.listen(f"number {number}", lambda _, number=number: order.append(number))  # type: ignore[misc]  # a default
    slot = runtime.core.slots[0]

    def counts() -> list[int]:
        kinds = (Wants.COMMITS, Wants.ENDINGS, Wants.REVOKED)
        return [len(heard[wants].batches) for wants in kinds]

    first, second = await push(runtime), await push(runtime)
    await commit(runtime)
    assert (counts(), order) == ([1, 0, 0], [1, 2])
    decide_cancel(slot.shard, runtime.core.now(), [first])
    runtime.core.after_decision(slot)
    await commit(runtime)
    assert counts() == [2, 1, 0]
    await a_pull(runtime)
    decide_cancel(slot.shard, runtime.core.now(), [second])
    runtime.core.after_decision(slot)
    await commit(runtime)
    assert (counts(), order) == ([3, 1, 1], [1, 2] * 3)


async def test_a_listener_that_fails_keeps_no_other_and_no_answer(runtime: Runtime) -> None:
    """Trial A4: it is counted; the commit is on disk, so the storage did not fail."""
    told: list[Sequence[CommittedBatch]] = []
    runtime.core.listen("bad", fails)
    runtime.core.listen("good", told.append)
    push = asyncio.ensure_future(runtime.pushes.push(a_push()))
    for _ in range(5):
        await asyncio.sleep(0)
    await runtime.core.commits.commit_once()
    assert (await push).count == 1
    assert len(told) == 1
    assert not runtime.failed.done()
    assert runtime.core.loops.record("bad").failures == 1


async def test_a_listener_that_works_again_is_well(runtime: Runtime) -> None:
    failures = [LookupError()] * 5

    def flaky(_: object) -> None:
        if failures:
            raise failures.pop()

    runtime.core.listen("flaky", flaky)
    await push(runtime)
    await commit(runtime)
    for _ in range(4):
        await push(runtime, level=MEMORY)
    assert runtime.core.loops.failing() == ["flaky"]
    await push(runtime, level=MEMORY)
    assert runtime.core.loops.failing() == []


@pytest.mark.parametrize("what", ["storage", "disk", "ids"])
async def test_a_push_that_cannot_be_kept_is_refused(runtime: Runtime, what: str) -> None:
    """With when it makes sense to try again: not at all if the server stops."""
    core, slot = runtime.core, runtime.core.slots[0]
    kinds = {
        "storage": (RefusalKind.STORAGE_FAILED, False),
        "disk": (RefusalKind.DISK_FULL, True),
        "ids": (RefusalKind.SERVER_FULL, True),
    }
    core.check_accepting(slot, 10)
    if what == "storage":
        core.commits.fail(OSError("EIO"))
        assert core.commits.failed.exception()
    elif what == "disk":
        core.commits.disk_full = True
    else:
        slot.position.id_ceiling = slot.shard.next_sequence + 10
        core.check_accepting(slot, 9)
    with pytest.raises(Refused) as refused:
        core.check_accepting(slot, 10)
    assert (refused.value.kind, bool(refused.value.retry_after_ms)) == kinds[what]


async def test_what_is_due_before_the_next_look_at_the_timers_hastens_it(runtime: Runtime) -> None:
    core = runtime.core
    clock = core.clock
    assert isinstance(clock, ManualClock)
    step = asyncio.ensure_future(runtime.timer_loop.step())
    await a_moment()
    core.timers.clear()
    tick_ms = core.next_tick.wall_ms
    for run_at_ms, is_hastened in ((tick_ms, False), (tick_ms - 1, True)):
        await runtime.pushes.push(a_push(run_at_ms=run_at_ms, level=MEMORY))
        assert core.timers.is_set() == is_hastened
    await step


async def test_gate_that_opens_before_the_next_look_hastens_it(runtime: Runtime) -> None:
    """A decision that closes it is the moment when that is known."""
    await push(runtime)
    core = runtime.core
    shard = core.slots[0].shard
    step = asyncio.ensure_future(runtime.timer_loop.step())
    await a_moment()
    core.timers.clear()
    core.after_decision(core.slots[0])
    assert not core.timers.is_set()
    close_gate(shard, shard.queues["mail"], (0, "", 0, None, ""), core.now().mono_ms + 5)
    core.after_decision(core.slots[0])
    assert core.timers.is_set()
    await step


async def test_a_decision_reads_the_clock_with_a_heart_that_beats(tmp_path: Path) -> None:
    """Without leases it rests; whoever decides may make one, whose time runs from now on."""
    async with opened(tmp_path, ManualClock()) as runtime:
        heartbeat = runtime.core.heartbeat
        heartbeat.start()
        try:
            assert heartbeat.resting
            assert runtime.core.wall_ms() == runtime.core.clock.now().wall_ms
            assert not heartbeat.resting
        finally:
            heartbeat.stop()


async def test_those_who_keep_something_of_a_shard_hear_that_it_is_lost(runtime: Runtime) -> None:
    """One that fails keeps no other; nothing is decided or served there any more."""
    core, slot = runtime.core, runtime.core.slots[0]
    told: list[ShardSlot] = []
    core.listen_closed("bad", fails)
    core.listen_closed("good", told.append)
    await push(runtime)
    await commit(runtime)
    slot.woken[slot.shard.queues["mail"]] = None
    core.slots.close(slot, Health.FENCED, "another process has it")
    assert (told, core.loops.record("bad").failures) == ([slot], 1)
    core.dispatch_ready = fails
    core.serve(slot)
    assert core.loops.record("hand_outs").failures == 0
    with pytest.raises(Refused) as refused:
        core.after_decision(slot)
    assert refused.value.kind is RefusalKind.SHARD_UNAVAILABLE
