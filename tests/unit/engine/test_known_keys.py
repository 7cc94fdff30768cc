"""Keys beside payloads: they decide as keys of rows do, and what is new stays one lot."""

from __future__ import annotations

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.load import Load
from jobline_server.engine.producers import Call
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, PushOutcome
from tests.pushed_rows import NewJob
from tests.unit.engine.unique_jobs import new
from tests.unit.engine.world import World

DUPLICATE, REFUSED = PushOutcome.DUPLICATE, RefusalKind.IDEMPOTENCY_MISMATCH


def keyed(key: str, payload: bytes = b"x") -> NewJob:
    return NewJob(payload, DEFAULT_OPTIONS, key)


def test_keys_beside_payloads_leave_a_lot_a_lot(world):
    first_id = world.push(payloads=[b"1", b"2", b"3"], job_keys=["a", "", "c"]).first_id
    lot = world.shard.lots.find(first_id)
    assert [lot.payloads.job_key_of(index) for index in range(3)] == ["a", "", "c"]
    assert (len(world.shard.jobs), world.shard.load.keys) == (0, 2)


def test_what_is_known_is_left_out_with_all_that_stands_beside_it(world):
    known = world.push(payloads=[b"1"], job_keys=["a"]).first_id
    columns = {"headers": {"h": ["x", "y", "z"]}, "job_keys": ["", "a", "b"]}
    pushed = world.push(payloads=[b"0", b"1", b"2"], **columns)
    assert (pushed.count, pushed.exceptions) == (2, [(1, DUPLICATE, known)])
    payloads = world.shard.lots.find(pushed.first_id).payloads
    headers = [payloads.options_of(index, DEFAULT_OPTIONS).headers for index in range(2)]
    assert (list(payloads), headers) == ([b"0", b"2"], [(("h", "x"),), (("h", "z"),)])
    assert [payloads.job_key_of(index) for index in range(2)] == ["", "b"]


def test_a_push_of_nothing_new_makes_no_lot(world):
    known = world.push(payloads=[b"1"], job_keys=["a"]).first_id
    pushed = world.push(payloads=[b"1", b"1"], job_keys=["a", "a"])
    assert (pushed.count, pushed.exceptions) == (0, [(0, DUPLICATE, known), (1, DUPLICATE, known)])
    assert len(world.shard.lots.lots) == 1


def test_rows_and_payloads_of_one_push_know_each_others_keys(world):
    """Indexes count payloads after rows, and ids are those that the first ones get."""
    rows = [NewJob(b"r", DEFAULT_OPTIONS), keyed("a")]
    pushed = world.push(jobs=rows, payloads=[b"p", b"x"], job_keys=["b", "a"])
    assert (pushed.count, pushed.exceptions) == (3, [(3, DUPLICATE, pushed.first_id + 1)])
    again = world.push(payloads=[b"p"], job_keys=["b"])
    assert again.exceptions == [(0, DUPLICATE, pushed.first_id + 2)]


def test_rows_without_keys_stand_before_payloads_with_some(world):
    rows = [NewJob(b"r", DEFAULT_OPTIONS)]
    pushed = world.push(jobs=rows, payloads=[b"p", b"p"], job_keys=["a", "a"])
    assert (pushed.count, pushed.exceptions) == (2, [(2, DUPLICATE, pushed.first_id + 1)])


def test_another_payload_refuses_the_whole_push_and_names_the_key(world):
    world.push(payloads=[b"1"], job_keys=["a"])
    with pytest.raises(Refused, match="job_key is known") as refused:
        world.push(jobs=[keyed("r")], payloads=[b"0", b"2"], job_keys=["", "a"])
    assert refused.value.kind is RefusalKind.IDEMPOTENCY_MISMATCH
    assert refused.value.field == "job_keys[1]"
    assert world.counts() == (0, 1, 0)


def test_a_key_twice_in_a_push_names_no_job_that_is_not_stored(world):
    """The id that the first of the two would have had goes to a job of the next push."""
    with pytest.raises(Refused, match="another job of this push has this job_key") as refused:
        world.push(payloads=[b"1", b"2"], job_keys=["a", "a"])
    assert refused.value.field == "job_keys[1]"


def test_a_push_that_is_not_atomic_leaves_out_what_it_must(world):
    world.push(payloads=[b"1"], job_keys=["a"])
    pushed = world.push(payloads=[b"2", b"3"], job_keys=["a", "b"], atomic=False)
    assert (pushed.count, pushed.exceptions) == (1, [(0, REFUSED, 0)])


def test_what_is_never_written_is_no_promise_for_what_is(world):
    world.push(payloads=[b"1"], job_keys=["a"], level=AckLevel.MEMORY)
    with pytest.raises(Refused):
        world.push(payloads=[b"1"], job_keys=["a"])
    again = world.push(payloads=[b"1"], job_keys=["a"], level=AckLevel.MEMORY)
    assert [outcome for _, outcome, _ in again.exceptions] == [DUPLICATE]


def test_keys_of_lots_are_known_after_a_restart_and_until_their_window_ends(world):
    known = world.push(payloads=[b"1", b"2"], job_keys=["a", "b"]).first_id
    world.shard = world.recovered()
    world.check()
    assert world.push(payloads=[b"2"], job_keys=["b"]).exceptions == [(0, DUPLICATE, known + 1)]
    world.advance(25 * limits.HOUR_MS)
    assert world.push(payloads=[b"2"], job_keys=["b"]).count == 1


def test_keys_of_payloads_at_their_cap_are_refused():
    world = World(Load(keys_max=2))
    world.push(payloads=[b"1"], job_keys=["a"])
    with pytest.raises(Refused, match="the server keeps 1 of 2 job keys"):
        world.push(jobs=[keyed("b")], payloads=[b"2", b"1"], job_keys=["c", "a"])
    assert world.push(payloads=[b"1", b"2"], job_keys=["a", ""], atomic=False).count == 1


def test_the_same_call_again_gets_the_same_answer(world):
    known = world.push(payloads=[b"1"], job_keys=["a"]).first_id
    call = {
        "jobs": [keyed("r"), NewJob(b"r", DEFAULT_OPTIONS)],
        "payloads": [b"1", b"2", b"3"],
        "job_keys": ["a", "b", ""],
        "calls": (Call(b"p" * 16, 1, 0, 7),),
    }
    first = world.push(**call)
    assert (first.count, first.exceptions) == (4, [(2, DUPLICATE, known)])
    assert world.push(**call) == first


def test_the_same_call_again_refuses_what_it_refused_for_a_key_that_has_expired(world):
    """Beside a unique key the call knows which of its rows it stored."""
    world.push(payloads=[b"1"], job_keys=["a"])
    world.advance(24 * limits.HOUR_MS - 1_000)
    call = {
        "jobs": [keyed("a", b"2"), new(key="u")],
        "atomic": False,
        "calls": (Call(b"p" * 16, 1, 0, 7),),
    }
    first = world.push(**call)
    assert (first.count, first.exceptions) == (1, [(0, REFUSED, 0)])
    world.advance(2_000)
    assert world.push(**call) == first


def test_large_payloads_stand_alone_with_their_keys(world):
    large = bytes(5 << 20)
    first_id = world.push(payloads=[b"1", large, b"2"], job_keys=["a", "b", "c"]).first_id
    lots = [world.shard.lots.find(first_id + index) for index in range(3)]
    assert [lot.payloads.job_key_of(0) for lot in lots] == ["a", "b", "c"]
    pushed = world.push(payloads=[b"2", large], job_keys=["c", "b"])
    assert pushed.exceptions == [(0, DUPLICATE, first_id + 2), (1, DUPLICATE, first_id + 1)]


def test_columns_count_for_the_room_of_the_server():
    """What has no limit is an attack."""
    world = World(Load(waiting_bytes_max=100))
    with pytest.raises(Refused, match="these jobs have 120 more"):
        world.push(payloads=[b""] * 2, headers={"h": ["x" * 50] * 2})
    assert world.push(payloads=[b""] * 2, headers={"h": ["x" * 40] * 2}).count == 2
