"""Room: pushes are let in only as far as their queue and the server have room."""

from __future__ import annotations

import pytest

from jobline_server.engine.commands import RefusalKind, Refused, ReleaseItem
from jobline_server.engine.load import Load
from jobline_server.engine.room import Room
from jobline_server.engine.values import DEFAULT_OPTIONS
from tests.pushed_rows import NewJob
from tests.unit.engine.world import World


def test_full_queue_refuses_and_stores_nothing(world):
    world.settings(max_waiting=3)
    world.plain(b"1", b"2", b"3")
    with pytest.raises(Refused, match="queue q has 3 of 3 waiting jobs") as refused:
        world.plain(b"4")
    assert (refused.value.kind, refused.value.retry_after_ms) == (RefusalKind.QUEUE_FULL, 1_000)
    world.lease(1)
    world.plain(b"4")
    assert world.counts() == (0, 3, 1)


def test_a_queue_with_as_many_bytes_as_it_may_hold_refuses_more(world):
    """Rows and plain payloads of one push count together."""
    world.settings(max_waiting_bytes=10)
    world.plain(b"1234", b"5678")
    for rest in ({"payloads": [b"123"]}, {"jobs": [NewJob(b"123", DEFAULT_OPTIONS)]}):
        with pytest.raises(Refused, match="queue q holds 8 of 10 payload bytes") as refused:
            world.push(**rest)
        assert refused.value.kind is RefusalKind.QUEUE_FULL
    assert world.push(payloads=[b"12"]).count == 1


def test_full_server_refuses_jobs():
    """Trial C7: what workers have does not wait, and what comes back of it is let in."""
    world = World(Load(waiting_max=2))
    world.plain(b"1", b"2")
    with pytest.raises(Refused, match="the server has 2 of 2 waiting jobs"):
        world.plain(b"3")
    (run,) = world.lease(1).runs
    world.plain(b"3")
    world.release(ReleaseItem(run.first_id, run.delivery))
    with pytest.raises(Refused, match="the server has 3 of 2 waiting jobs"):
        world.plain(b"4")
    world.check()


def test_room_is_taken_by_what_was_let_in_before_it():
    """Trial C7: of each queue, and of all together."""
    world = World(Load(waiting_max=5))
    world.settings(max_waiting=2)
    room, queue = Room(world.shard.load), world.queue()
    assert [room.refusal(queue, 1, 0) for _ in range(2)] == [None, None]
    refusals = [room.refusal(queue, 1, 0), room.refusal(None, 3, 0), room.refusal(None, 1, 0)]
    kinds = [refusal and refusal.kind for refusal in refusals]
    assert kinds == [RefusalKind.QUEUE_FULL, None, RefusalKind.SERVER_FULL]


def test_push_that_would_go_beyond_the_bytes_of_the_server_is_refused():
    """Payloads and rows count, and rows that are known already do not."""
    world = World(Load(waiting_bytes_max=10))
    world.push(jobs=[NewJob(b"xxxx", DEFAULT_OPTIONS, "a")], payloads=[b"yyyy"])
    with pytest.raises(Refused, match="the server holds 8 of 10 payload bytes") as refused:
        world.push(jobs=[NewJob(b"z", DEFAULT_OPTIONS, "b")], payloads=[b"zz"])
    assert refused.value.kind is RefusalKind.SERVER_FULL
    assert world.push(jobs=[NewJob(b"xxxx", DEFAULT_OPTIONS, "a")], payloads=[b"zz"]).count == 1
    with pytest.raises(Refused, match="10 of 10 payload bytes; these jobs have 1 more"):
        world.plain(b"z")
    assert world.plain(b"").count == 1
