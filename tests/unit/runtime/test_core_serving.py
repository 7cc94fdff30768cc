"""Which queues are served after a commit, and when again."""

from __future__ import annotations

import asyncio

import pytest

from jobline_server.engine.commands import Pull
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.decide.queues import decide_delete_queue, decide_pause_queue
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import AckLevel
from jobline_server.runtime.core import Core
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.slots import ShardSlot
from tests.unit.runtime.test_core import MEMORY, a_push, commit, fails, push


class Served:
    """Stands in for the dispatcher: notes the queues to serve, and wants more of one."""

    def __init__(self, core: Core, wants_more_of: str = "") -> None:
        self.queues: list[str] = []
        self._wants_more_of = wants_more_of
        core.dispatch_ready = self.serve

    def serve(self, _slot: ShardSlot, queue: Queue) -> bool:
        self.queues.append(queue.name)
        return queue.name == self._wants_more_of

    def take(self) -> list[str]:
        taken, self.queues = self.queues, []
        return taken


async def test_a_hand_out_that_fails_is_tried_again(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial A4: after the next commit, without a word of a failed storage."""
    dispatch_ready = runtime.core.dispatch_ready
    monkeypatch.setattr(runtime.core, "dispatch_ready", fails)
    pull = asyncio.ensure_future(runtime.pulls.pull(Pull((("mail", 1),), wait_ms=20_000)))
    await runtime.pushes.push(a_push(level=AckLevel.BUFFERED))
    await runtime.core.commits.commit_once()
    assert runtime.core.loops.record("hand_outs").failures_in_a_row == 1
    monkeypatch.setattr(runtime.core, "dispatch_ready", dispatch_ready)
    await runtime.pushes.push(a_push("other", level=AckLevel.BUFFERED))
    await runtime.core.commits.commit_once()
    assert (await pull).count() == 1
    assert runtime.core.loops.record("hand_outs").failures_in_a_row == 0
    assert not runtime.failed.done()


async def test_queues_that_something_happened_to_are_served_once(runtime: Runtime) -> None:
    """In the order in which it happened, and after the listeners."""
    served = Served(runtime.core)
    runtime.core.listen("first", lambda _: served.queues.append("listener"))
    for queue in ("b", "a", "b"):
        await push(runtime, queue)
    assert served.take() == []
    await commit(runtime)
    assert served.take() == ["listener", "b", "a"]
    await push(runtime, "a", level=MEMORY)
    assert served.take() == ["listener", "a"]


@pytest.mark.parametrize("what", ["paused", "deleted", "empty"])
async def test_queues_that_have_nothing_to_give_are_passed_over(
    runtime: Runtime, what: str
) -> None:
    served, core = Served(runtime.core), runtime.core
    job_id = await push(runtime)
    shard = core.slots[0].shard
    if what == "paused":
        decide_pause_queue(shard, core.now(), "mail", "", "")
    elif what == "deleted":
        decide_delete_queue(shard, core.now(), "mail", force=True)
    else:
        decide_cancel(shard, core.now(), [job_id])
    await commit(runtime)
    assert served.take() == []


async def test_a_queue_of_which_more_is_wanted_is_served_again_after_the_next_commit(
    runtime: Runtime,
) -> None:
    """If something waits for that; else what is left cannot go, whatever is committed."""
    served = Served(runtime.core, wants_more_of="mail")
    await push(runtime)
    task = asyncio.ensure_future(commit(runtime))
    await asyncio.sleep(0)
    await push(runtime)
    await push(runtime, "other")
    await task
    assert served.take() == ["mail"]
    await commit(runtime)
    assert served.take() == ["mail", "other"]
    await push(runtime, "other")
    await commit(runtime)
    assert served.take() == ["other"]


async def test_a_queue_that_fails_keeps_no_other_waiting(runtime: Runtime) -> None:
    """And is served again when anything happens to its shard."""
    core, served = runtime.core, Served(runtime.core)

    def serve(slot: ShardSlot, queue: Queue) -> bool:
        if queue.name == "bad":
            raise LookupError
        return served.serve(slot, queue)

    core.dispatch_ready = serve
    for queue in ("a", "bad", "b"):
        await push(runtime, queue)
    await commit(runtime)
    assert served.take() == ["a", "b"]
    core.dispatch_ready = served.serve
    core.serve(core.slots[0])
    assert served.take() == ["bad"]
    core.serve(core.slots[0])
    assert served.take() == []
