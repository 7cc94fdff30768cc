"""Pushes: what is stored, what is known already, and what is refused with nothing stored."""

from __future__ import annotations

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.queues import decide_delete_queue
from jobline_server.engine.decide.update import decide_forget_key
from jobline_server.engine.load import Load
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobOptions, PushOutcome
from tests.pushed_rows import NewJob
from tests.unit.engine.world import World

HOUR_MS = 3_600_000
DUPLICATE, REFUSED = PushOutcome.DUPLICATE, RefusalKind.IDEMPOTENCY_MISMATCH


def keyed(key: str, payload: bytes = b"x") -> NewJob:
    return NewJob(payload, DEFAULT_OPTIONS, key)


def test_repeated_request_of_rows_and_plain_payloads_stands_for_all_of_them(world):
    """Two facts tell of such a push; the request id knows both."""
    call = {"jobs": [keyed("a")], "payloads": [b"1", b"2"], "request_id": b"r"}
    first = world.push(**call)
    again = world.push(**call)
    assert (first.count, again.first_id, again.count) == (3, first.first_id, 3)
    assert world.counts() == (0, 3, 0)
    assert (world.shard.load.keys, world.shard.load.requests) == (1, 1)


def test_repeated_request_has_the_same_exceptions_as_the_first(world):
    """A reply that was lost is told again, with the jobs that were known or refused."""
    known = world.push(jobs=[keyed("a"), keyed("b")]).first_id
    jobs = [keyed("a"), keyed("new"), keyed("b", b"other"), keyed("new")]
    first = world.push(jobs=jobs, request_id=b"r", atomic=False)
    again = world.push(jobs=jobs, request_id=b"r", atomic=False)
    duplicate_in_call = (3, DUPLICATE, first.first_id)
    assert first.exceptions == [(0, DUPLICATE, known), (2, REFUSED, 0), duplicate_in_call]
    assert again == first


def test_key_of_a_job_that_is_never_written_promises_nothing_to_a_durable_push(world):
    """Its id would be told as stored, and would be gone after a crash."""
    world.push(jobs=[keyed("a")], level=AckLevel.MEMORY)
    with pytest.raises(Refused) as refused:
        world.push(jobs=[keyed("a")])
    assert refused.value.kind is RefusalKind.IDEMPOTENCY_MISMATCH
    pushed = world.push(jobs=[keyed("a"), keyed("b")], atomic=False)
    assert pushed.exceptions == [(0, REFUSED, 0)]
    assert world.push(jobs=[keyed("b")], level=AckLevel.MEMORY).exceptions[0][1] is DUPLICATE


def test_repeated_request_refuses_what_was_known_when_the_key_has_gone(world):
    """Nothing is told as created that was not."""
    world.push(jobs=[keyed("a")], level=AckLevel.MEMORY)
    call = {"jobs": [keyed("a"), keyed("b")], "request_id": b"r", "atomic": False}
    first = world.push(**call)
    world.shard = world.recovered()
    again = world.push(**call)
    assert (again.first_id, again.count) == (first.first_id, 1)
    assert again.exceptions == [(0, REFUSED, 0)]


@pytest.mark.parametrize("pushed_again", [False, True])
def test_repeated_request_stands_for_jobs_whose_keys_were_forgotten(world, pushed_again):
    """They were stored, whoever has their keys now."""
    call = {"jobs": [keyed("a"), keyed("b")], "payloads": [b"1"], "request_id": b"r"}
    first = world.push(**call)
    decide_forget_key(world.shard, world.now, "q", "a")
    if pushed_again:
        world.push(jobs=[keyed("a")])
    again = world.push(**call)
    assert (again.first_id, again.count, again.exceptions) == (first.first_id, 3, [])


def test_repeated_request_knows_a_forgotten_key_beside_those_of_others(world):
    known = world.push(jobs=[keyed("a")]).first_id
    call = {"jobs": [keyed("a"), keyed("b"), keyed("c")], "request_id": b"r"}
    first = world.push(**call)
    decide_forget_key(world.shard, world.now, "q", "b")
    assert world.push(**call) == first
    assert first.exceptions == [(0, DUPLICATE, known)]


def test_queue_comes_into_being_with_its_first_job(world):
    """It takes an id itself, so that queues are told apart from those before them."""
    pushed = world.push(payloads=[b"1"])
    assert world.queue().number == pushed.first_id - 1
    assert world.push(payloads=[b"2"]).first_id == pushed.first_id + 1


def test_push_of_nothing_makes_no_queue(world):
    pushed = world.push()
    assert (pushed.count, pushed.exceptions, world.shard.queues) == (0, [], {})


def test_rows_come_before_plain_payloads_and_ids_follow_each_other(world):
    jobs = [NewJob(b"r1", JobOptions(priority=1)), NewJob(b"r2", DEFAULT_OPTIONS)]
    pushed = world.push(jobs=jobs, payloads=[b"p1", b"p2"])
    payloads = [world.shard.jobs[pushed.first_id + i].payload for i in range(2)]
    assert (payloads, pushed.count) == ([b"r1", b"r2"], 4)
    assert world.shard.lots.find(pushed.first_id + 3).first_id == pushed.first_id + 2


def test_jobs_with_the_same_options_share_one_object_in_the_fact(world):
    options = JobOptions(name="mail")
    world.push(jobs=[NewJob(b"1", options), NewJob(b"2", options)])
    assert world.journal[-1][1].options == [options]
    world.push(jobs=[NewJob(b"1", options), NewJob(b"2", DEFAULT_OPTIONS)])
    assert world.journal[-1][1].options == [options, DEFAULT_OPTIONS]


def test_delay_in_the_past_means_now(world):
    jobs = [NewJob(b"1", DEFAULT_OPTIONS, run_at_ms=world.now.wall_ms - 1)]
    world.push(jobs=jobs, payloads=[b"2"], delay_ms=-5_000)
    assert world.counts() == (0, 2, 0)


def test_delayed_jobs_wait_beside_those_that_do_not(world):
    later = world.now.wall_ms + 1_000
    world.push(jobs=[NewJob(b"1", DEFAULT_OPTIONS, run_at_ms=later), NewJob(b"2", DEFAULT_OPTIONS)])
    world.push(payloads=[b"3", b"4"], delay_ms=1_000)
    assert world.counts() == (3, 1, 0)


def test_same_key_and_payload_is_the_same_job_also_after_it_ended(world):
    first_id = world.row(key="a")
    world.ack([(first_id, world.one().delivery)])
    world.advance(23 * HOUR_MS)
    assert world.push(jobs=[keyed("a")]).exceptions == [(0, DUPLICATE, first_id)]
    assert world.counts() == (0, 0, 0)


def test_key_is_free_after_its_window_and_in_another_queue(world):
    first_id = world.row(key="a")
    assert world.row(key="a", queue="other") > first_id
    world.advance(25 * HOUR_MS)
    assert world.row(key="a") > first_id


def test_key_outlives_its_job_and_its_queue(world):
    """Whatever is pushed with it until its window ends stands for the job that is gone."""
    first_id = world.row(key="a")
    decide_delete_queue(world.shard, world.now, "q", force=False)
    world.commit()
    assert world.push(jobs=[keyed("a")]).exceptions == [(0, DUPLICATE, first_id)]
    assert "q" not in world.shard.queues
    assert world.shard.load.keys == 1
    world.advance(25 * HOUR_MS)
    assert world.row(key="a") > first_id


def test_same_key_with_another_payload_refuses_the_whole_push(world):
    known = world.row(key="a")
    with pytest.raises(Refused, match=f"job_key is known for job {known} with") as refused:
        world.push(jobs=[keyed("b"), keyed("a", b"other")], payloads=[b"p"])
    assert refused.value.kind is RefusalKind.IDEMPOTENCY_MISMATCH
    assert refused.value.field == "jobs[1].job_key"
    assert world.counts() == (0, 1, 0)


def test_same_key_twice_in_one_push_is_one_job(world):
    pushed = world.push(jobs=[keyed("a"), keyed("a"), keyed("b")])
    assert (pushed.count, pushed.exceptions) == (2, [(1, DUPLICATE, pushed.first_id)])


def test_push_that_is_not_atomic_leaves_out_what_it_must(world):
    world.row(key="a")
    pushed = world.push(jobs=[keyed("a", b"other"), keyed("b")], atomic=False)
    assert (pushed.count, pushed.exceptions) == (1, [(0, REFUSED, 0)])


def test_request_id_with_another_request_is_refused(world):
    world.push(payloads=[b"1"], request_id=b"r", request_digest=1)
    with pytest.raises(Refused) as refused:
        world.push(payloads=[b"2"], request_id=b"r", request_digest=2)
    assert (refused.value.kind, refused.value.field) == (
        RefusalKind.IDEMPOTENCY_MISMATCH,
        "request_id",
    )


def test_request_id_is_forgotten_after_ten_minutes(world):
    first = world.push(payloads=[b"1"], request_id=b"r").first_id
    world.advance(10 * 60_000)
    assert world.push(payloads=[b"1"], request_id=b"r").first_id > first


def test_repeated_request_is_told_the_level_that_it_reached(world):
    """Its queue wants more by now, but what is never written stays so."""
    call = {"payloads": [b"1"], "request_id": b"r"}
    first = world.push(**call, level=AckLevel.MEMORY)
    world.settings(min_ack_level=AckLevel.FSYNCED)
    assert world.push(**call) == first
    assert first.level is AckLevel.MEMORY


def test_repeated_request_of_rows_without_keys_is_told_as_before(world):
    jobs = [NewJob(b"1", DEFAULT_OPTIONS), keyed("a")]
    first = world.push(jobs=jobs, request_id=b"r")
    assert world.push(jobs=jobs, request_id=b"r") == first


@pytest.mark.parametrize(
    ("asked", "minimum", "reached"),
    [
        (None, None, AckLevel.FSYNCED),
        (AckLevel.MEMORY, None, AckLevel.MEMORY),
        (None, AckLevel.BUFFERED, AckLevel.BUFFERED),
        (AckLevel.MEMORY, AckLevel.BUFFERED, AckLevel.BUFFERED),
        (AckLevel.FSYNCED, AckLevel.BUFFERED, AckLevel.FSYNCED),
    ],
)
def test_level_is_never_less_than_asked_or_than_the_queue_wants(world, asked, minimum, reached):
    world.settings(min_ack_level=minimum)
    assert world.push(payloads=[b"1"], level=asked).level is reached


def test_keys_at_their_cap_are_refused_and_none_is_evicted():
    """Predecessors: above 1,000 keys, half of them were evicted."""
    world = World(Load(keys_max=2))
    known = world.row(key="a")
    with pytest.raises(Refused, match="the server keeps 1 of 2 job keys") as refused:
        world.push(jobs=[keyed("b"), keyed("c")])
    assert refused.value.kind is RefusalKind.KEYS_FULL
    world.row(key="b")
    assert world.plain(b"no key").count == 1
    assert world.push(jobs=[keyed("a")]).exceptions == [(0, DUPLICATE, known)]


def test_request_ids_have_a_cap_of_their_own():
    """Trial C1: they take no room of job keys, nor do job keys of theirs."""
    world = World(Load(keys_max=1, requests_max=1))
    first = world.push(payloads=[b"1"], request_id=b"r")
    world.row(key="a")
    with pytest.raises(Refused, match="the server keeps 1 of 1 request ids") as refused:
        world.push(payloads=[b"2"], request_id=b"s")
    assert refused.value.kind is RefusalKind.REQUEST_IDS_FULL
    assert world.push(payloads=[b"1"], request_id=b"r") == first
    world.tick(limits.REQUEST_WINDOW_MS + limits.MINUTE_MS)
    assert world.shard.load.requests == 0
    assert world.push(payloads=[b"2"], request_id=b"s").count == 1


def test_a_forward_jump_of_the_wall_clock_forgets_no_key(world):
    """Trial E10: a window ends when it has really passed, wherever the clock was set meanwhile."""
    known = world.row(key="a")
    asked = world.push(payloads=[b"1"], request_id=b"r")
    world.now = world.now._replace(wall_ms=world.now.wall_ms + 3 * 365 * limits.DAY_MS)
    world.tick(1_000)
    assert world.push(jobs=[keyed("a")]).exceptions == [(0, DUPLICATE, known)]
    assert world.push(payloads=[b"1"], request_id=b"r") == asked
    world.tick(limits.REQUEST_WINDOW_MS)
    assert world.push(payloads=[b"1"], request_id=b"r").first_id > asked.first_id
    world.tick(limits.DAY_MS)
    assert world.push(jobs=[keyed("a")]).count == 1


def test_a_backward_jump_of_the_wall_clock_keeps_no_key_longer(world):
    """Trial E10."""
    world.row(key="a")
    world.now = world.now._replace(wall_ms=world.now.wall_ms - 365 * limits.DAY_MS)
    world.tick(limits.DAY_MS + 2 * limits.MINUTE_MS)
    assert world.shard.load.keys == 0
