"""Calls of producers: known when they come again, over when their producer says so, and few."""

from __future__ import annotations

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import Pushed, RefusalKind, Refused
from jobline_server.engine.load import Load
from jobline_server.engine.producers import Call
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, PushOutcome
from tests.pushed_rows import NewJob
from tests.unit.engine.world import World

A, B = b"a" * 16, b"b" * 16


def call(world: World, sequence: int, below: int = 0, *, producer: bytes = A, **rest) -> Pushed:
    rest = {"payloads": [b"x"], **rest}
    return world.push(calls=(Call(producer, sequence, below, 7),), **rest)


def test_a_call_that_comes_again_gets_the_same_answer(world):
    """Trial C1: in any order, and beside those of another producer."""
    first, second = call(world, 1, payloads=[b"x", b"y"]), call(world, 2)
    assert call(world, 1, payloads=[b"x", b"y"]) == first
    assert call(world, 2) == second
    assert call(world, 1, producer=B).first_id not in (first.first_id, second.first_id)
    assert (world.counts(), world.shard.load.calls) == ((0, 4, 0), 5)
    world.check()


def test_a_call_of_rows_with_keys_and_payloads_stands_for_all_of_them(world):
    """Trial C1: two facts tell of it, and a key that was known is looked up again."""
    known = world.row(key="k")
    rows = [NewJob(b"x", DEFAULT_OPTIONS, "k"), NewJob(b"y", DEFAULT_OPTIONS, "new")]
    first = call(world, 1, jobs=rows, payloads=[b"1", b"2"])
    assert (first.count, first.exceptions) == (3, [(0, PushOutcome.DUPLICATE, known)])
    assert call(world, 1, jobs=rows, payloads=[b"1", b"2"]) == first


def test_another_request_under_a_known_call_is_refused(world):
    call(world, 1)
    with pytest.raises(Refused, match=r"producer\.sequence was used before") as refused:
        world.push(calls=(Call(A, 1, 0, 8),), payloads=[b"x"])
    assert refused.value.kind is RefusalKind.IDEMPOTENCY_MISMATCH


def test_a_delayed_copy_of_a_call_that_is_over_is_refused(world):
    """Trial C1: nobody waits for it, so nothing is stored."""
    call(world, 5, below=5)
    for sequence in (1, 4):
        with pytest.raises(Refused, match=f"call {sequence} of this producer is over") as refused:
            call(world, sequence)
        assert refused.value.kind is RefusalKind.CALL_OVER
    assert world.counts() == (0, 1, 0)


def test_what_is_kept_of_a_producer_is_what_may_come_again(world):
    """Trial C1: a producer with three calls under way needs a place for three, for ever."""
    for sequence in range(1, 1_000):
        call(world, sequence, below=max(sequence - 2, 0))
    assert world.shard.load.calls == 1 + 3
    assert list(world.shard.producers.records[A].calls) == [997, 998, 999]


def test_a_producer_with_too_many_calls_under_way_is_refused(world, monkeypatch):
    """One that says which are over goes on."""
    monkeypatch.setattr(limits, "PRODUCER_CALLS_MAX", 2)
    call(world, 1)
    call(world, 2)
    with pytest.raises(Refused, match="2 calls of this producer are kept") as refused:
        call(world, 3)
    assert refused.value.kind is RefusalKind.PRODUCERS_FULL
    assert call(world, 3, below=2).count == 1


def test_producers_have_a_cap_of_their_own():
    """Trial C1: keys and request ids go on, and so do producers that let go of a call for each."""
    world = World(Load(calls_max=2))
    call(world, 1)
    with pytest.raises(Refused, match="the server keeps 2 of 2 producers and their calls"):
        call(world, 1, producer=B)
    assert call(world, 2, below=2).count == 1
    assert world.push(payloads=[b"1"], request_id=b"r").count == 1
    world.row(key="k")


def test_a_producer_that_is_away_for_ten_minutes_is_forgotten(world):
    """Trial C1: one that is heard meanwhile is not."""
    call(world, 1)
    old = call(world, 1, producer=B)
    world.tick(limits.PRODUCER_WINDOW_MS - limits.MINUTE_MS)
    call(world, 2)
    world.tick(2 * limits.MINUTE_MS)
    assert set(world.shard.producers.records) == {A}
    assert world.shard.load.calls == 3
    assert call(world, 1, producer=B).first_id > old.first_id
    world.tick(limits.PRODUCER_WINDOW_MS + limits.MINUTE_MS)
    assert (world.shard.load.calls, world.shard.holds_keys()) == (0, False)


def test_a_producer_that_comes_back_before_it_was_swept_begins_anew(world):
    call(world, 9, below=9)
    world.now = type(world.now)(world.now.wall_ms, world.now.mono_ms + limits.PRODUCER_WINDOW_MS)
    assert call(world, 1).count == 1
    assert list(world.shard.producers.records[A].calls) == [1]
    world.check()


def test_calls_of_volatile_jobs_go_with_the_process(world):
    first = call(world, 1, level=AckLevel.MEMORY)
    assert call(world, 1, level=AckLevel.MEMORY) == first
    assert not world.shard.producers.records
    assert not world.shard.changes.producers.to_write
    world.check()


def test_several_calls_become_one_lot_and_each_knows_its_share(world):
    calls = Call(A, 1, 0, 7), Call(B, 1, 0, 7)
    first_id = world.push(calls=calls, call_jobs=(1, 2), payloads=[b"x", b"y", b"z"]).first_id
    assert call(world, 1).first_id == first_id
    again = call(world, 1, producer=B, payloads=[b"y", b"z"])
    assert (again.first_id, again.count) == (first_id + 1, 2)


@pytest.mark.parametrize("calls", [(Call(A, 1, 0, 7), Call(B, 1, 0, 7)), (Call(B, 1, 0, 7),) * 2])
def test_several_calls_of_which_one_is_not_new_are_refused_together(world, calls):
    """Trial C1: then each is decided alone."""
    call(world, 1)
    with pytest.raises(Refused, match="one of these calls came before"):
        world.push(calls=calls, call_jobs=(1, 1), payloads=[b"x", b"y"])
    assert world.counts() == (0, 1, 0)
