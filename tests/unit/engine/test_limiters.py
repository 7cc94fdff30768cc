"""Named limiters: what they let out of any queue, and when the lanes in their lines open (G14)."""

from __future__ import annotations

from jobline_server.engine.commands import ReleaseItem
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.decide.limiters import (
    decide_delete_limiter,
)
from jobline_server.engine.decide.queues import decide_delete_queue
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.values import JobOptions
from tests.unit.engine.limiter_world import ONE_A_SECOND, leases, lot, put, rules


def test_queues_share_a_rate(world):
    put(world, rate=ONE_A_SECOND)
    lot(world, 3, "api", queue="a")
    lot(world, 3, "api", queue="b")
    assert len(leases(world, "a", 1)) == 1
    assert len(leases(world, "b")) == 1
    assert (leases(world, "a"), leases(world, "b")) == ([], [])
    world.check()
    world.advance(1_000)
    assert len(leases(world, "a")) + len(leases(world, "b")) == 1


def test_jobs_without_the_limiter_go_past_its_lane(world):
    put(world, most=1)
    first_id = lot(world, 2, "api")
    plain_id = world.plain(b"x").first_id
    assert [job_id for job_id, _ in leases(world)] == [first_id, plain_id]
    assert world.shard.gates.first_ms() == world.now.mono_ms, "others may be behind it"
    plain_id = world.plain(b"x").first_id
    assert [job_id for job_id, _ in leases(world)] == [plain_id]


def test_lane_that_is_closed_costs_nothing_until_a_job_ends(world):
    put(world, most=1)
    lot(world, 2, "api", queue="a")
    lot(world, 1, "api", queue="b")
    [held] = leases(world, "a", 1)
    assert (leases(world, "a"), leases(world, "b")) == ([], [])
    assert world.shard.limiters.first_ms() is None
    assert [*world.queue("b").open.ranks(None)] == []
    world.ack([held])
    assert world.shard.limiters.first_ms() is not None
    assert world.shard.limiters.open_due(world.now, 100) == [world.queue("a")], (
        "one place, one lane"
    )
    world.check()


def test_lanes_that_nobody_takes_from_hold_up_no_others(world):
    """They are opened, more of them each time, until somebody takes."""
    put(world, most=1)
    lot(world, 1, "api", queue="first")
    [held] = leases(world, "first")
    for number in range(20):
        lot(world, 1, "api", queue=f"q{number}")
        assert leases(world, f"q{number}") == []
    world.ack([held])
    opened = []
    for _ in range(10):
        opened.append(len(world.shard.limiters.open_due(world.now, 100)))
        world.advance(2)
    assert opened[:6] == [1, 1, 2, 4, 8, 4]
    assert len(leases(world, "q19")) == 1
    world.check()


def test_lanes_whose_jobs_are_gone_leave_the_line(world):
    """Of many names, each pulled once and cancelled while the limiter lets nothing out."""
    put(world, most=1)
    lot(world, 1, "api", queue="first")
    leases(world, "first")
    for number in range(50):
        options = JobOptions(name=f"n{number}", rules=rules("api"))
        job_id = world.plain(b"x", queue="q", options=options).first_id
        assert leases(world, "q") == []
        decide_cancel(world.shard, world.now, [job_id])
        world.check()
    line = world.shard.limiters.find("api").line
    assert len(line) < 4
    assert len([*world.queue("q").lanes()]) == len(line)


def test_a_step_opens_a_slice_at_most(world):
    put(world, most=1)
    lot(world, 1, "api")
    leases(world)
    for number in range(5):
        lot(world, 1, "api", queue=f"q{number}")
        leases(world, f"q{number}")
    decide_delete_limiter(world.shard, world.now, "api")
    assert len(world.shard.limiters.open_due(world.now, 3)) == 3
    world.advance(2)
    assert len(world.shard.limiters.open_due(world.now, 3)) == 2


def test_job_passes_all_of_its_limiters_or_takes_from_none(world):
    put(world, "api", rate=ONE_A_SECOND)
    put(world, "disk", most=1)
    lot(world, 3, "api", "disk")
    [held] = leases(world)
    assert world.shard.limiters.find("api").allowance.tokens(world.now.mono_ms) == 1
    assert leases(world) == []
    assert world.shard.limiters.find("api").allowance.tokens(world.now.mono_ms) == 1
    world.ack([held])
    assert len(leases(world)) == 1


def test_job_takes_the_tokens_that_it_costs(world):
    put(world, rate=RateLimit(1, 1_000, 5))
    cheap = world.row(rules=rules("api", cost=4))
    dear = world.row(rules=rules("api", cost=3))
    assert [job_id for job_id, _ in leases(world)] == [cheap]
    world.advance(1_000)
    assert leases(world) == []
    world.advance(1_000)
    assert [job_id for job_id, _ in leases(world)] == [dear]


def test_single_jobs_and_lots_free_their_places_however_they_end(world):
    put(world, most=9)
    lot(world, 3, "api")
    for _ in range(4):
        world.row(rules=rules("api"))
    held = leases(world)
    limiter = world.shard.limiters.find("api")
    assert limiter.active == 7
    world.ack(held[:1], {held[0][0]: b"done"})
    world.fail(*held[1], retry_after_ms=5_000)
    world.release(ReleaseItem(*held[2]))
    world.fail(*held[3])
    world.check()
    assert limiter.active == 3
    decide_delete_queue(world.shard, world.now, "q", force=True)
    assert limiter.active == 0
    world.check()


def test_lot_that_goes_with_its_queue_frees_its_places_and_its_line(world):
    put(world, most=2)
    lot(world, 5, "api")
    assert len(leases(world)) == 2
    assert leases(world) == []
    limiter = world.shard.limiters.find("api")
    assert len(limiter.line) == 1
    decide_delete_queue(world.shard, world.now, "q", force=True)
    assert (limiter.active, limiter.line) == (0, {})
    world.plain(b"x", queue="free")
    decide_delete_queue(world.shard, world.now, "free", force=True)


def test_deleted_limiter_lets_its_jobs_go(world):
    put(world, most=1)
    lot(world, 3, "api")
    held = leases(world)
    assert leases(world) == []
    decide_delete_limiter(world.shard, world.now, "api")
    held += leases(world)
    assert len(held) == 3
    put(world, most=3)
    assert world.shard.limiters.find("api").active == 3, "it knows what is active"
    decide_delete_limiter(world.shard, world.now, "api")
    world.ack(held)
    assert not world.shard.limiters


def test_deleted_limiter_is_never_due_again(world):
    """A look at it stayed due for ever: the timers of the server ran round and round."""
    put(world, most=1)
    assert world.shard.limiters.first_ms() is not None, "changed settings are looked at"
    decide_delete_limiter(world.shard, world.now, "api")
    assert not world.shard.limiters
    assert world.shard.limiters.first_ms() is None
    put(world, most=1)
    assert world.shard.limiters.first_ms() is not None
