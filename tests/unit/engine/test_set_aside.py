"""A running job that is set aside for children: what it keeps, and what is free meanwhile."""

from __future__ import annotations

from dataclasses import replace

from jobline_server.engine.decide.limiters import decide_put_limiter
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.engine.rules import NO_RULES, DeliveryMode, JobRules
from jobline_server.engine.ties import Ties
from jobline_server.engine.unique_rule import UniqueMode, UniqueRule
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
)
from tests.pushed_rows import NewJob
from tests.shard_image import image_of
from tests.unit.engine.added_children import add, below, end
from tests.unit.engine.dependents import BLOCKED, READY, is_free, push, told
from tests.unit.engine.fair_world import FairWorld


def test_its_places_are_free_while_it_waits(world):
    """The window of its worker, a limiter, and the concurrency of its queue."""
    world.settings(concurrency=1)
    decide_put_limiter(world.shard, world.now, "api", None, 1)
    rules = replace(NO_RULES, limiters=("api",))
    first, second = world.row(rules=rules), world.row(rules=rules)
    holder = world.session()
    [job] = world.lease(holder=holder).jobs
    assert job.id == first
    add(world, job, below(world))
    assert holder.in_flight.jobs == 0
    assert world.ids(holder=holder) == [second]


def test_its_group_goes_on_and_it_comes_back_behind(world):
    """Else a child of the same group would wait for it, and it for the child."""
    ids = [push(world, NewJob(b"x", DEFAULT_OPTIONS, ties=Ties("g"))) for _ in range(3)]
    job = world.one()
    inside = world.push(queue="q", jobs=[NewJob(b"x", DEFAULT_OPTIONS, ties=Ties("g"))]).first_id
    add(world, job, inside)
    order = []
    while (leased := world.lease(1).jobs) and leased[0].id != job.id:
        order.append(leased[0].id)
        world.ack([(leased[0].id, leased[0].delivery)])
        told(world)
    assert order == [*ids[1:], inside]
    assert leased[0].id == job.id
    assert is_free(world)


def test_it_keeps_its_unique_key(world):
    rule = UniqueRule(UniqueMode.KEEP)
    options = replace(DEFAULT_OPTIONS, rules=JobRules(unique=rule))
    held = NewJob(b"x", options, ties=Ties("", "u"))
    parent = push(world, held)
    add(world, world.one(), below(world))
    again = world.push(jobs=[held])
    assert [(outcome[2]) for outcome in again.exceptions] == [parent]


def test_once_job_is_handed_out_again(world):
    """Its worker gave it back, as by a release."""
    world.row(rules=JobRules(delivery_mode=DeliveryMode.ONCE))
    job = world.one()
    one = below(world)
    add(world, job, one)
    end(world, one)
    assert world.one().id == job.id


def test_timeout_of_the_attempt_begins_anew(world):
    rules = replace(NO_RULES, timeout_ms=5_000)
    parent = world.row(rules=rules)
    job = world.one()
    one = below(world)
    add(world, job, one)
    world.tick(6_000)
    assert world.state(parent) is BLOCKED
    end(world, one)
    assert world.one().attempt == 1
    world.tick(4_000)
    assert world.shard.jobs[parent].attempts == 0


def test_block_timeout_counts_from_now(world):
    world.row(rules=replace(NO_RULES, block_timeout_ms=5_000))
    world.advance(60_000)
    job = world.one()
    one = below(world)
    add(world, job, one)
    world.tick(4_000)
    assert world.state(job.id) is BLOCKED
    world.ended()
    world.tick(2_000)
    assert world.ended()[job.id][1].error.type == "BlockTimeout"


def test_ttl_ends_a_job_that_waits(world):
    world.row(rules=replace(NO_RULES, ttl_ms=5_000))
    job = world.one()
    add(world, job, below(world))
    world.tick(6_000)
    assert world.state(job.id) is None
    assert is_free(world)


def test_recovery_is_the_same_at_each_step(world):
    """Set aside with its children in one commit, told, handed out again."""
    world.row(rules=replace(NO_RULES, block_timeout_ms=60_000))
    push(world, NewJob(b"x", DEFAULT_OPTIONS, ties=Ties("g")))
    for job in world.lease().jobs:
        one = below(world)
        add(world, job, one)
        assert image_of(world.recovered()) == image_of(world.shard)
        end(world, one)
        assert image_of(world.recovered()) == image_of(world.shard)
    world.lease()
    assert image_of(world.recovered()) == image_of(world.shard)


def test_tenant_of_a_fair_queue_is_served_again():
    """One that runs one job at a time: its place is free, and the worker time was counted."""
    world = FairWorld(group=GroupSettings(concurrency=1))
    first, second = world.jobs("a", "a")
    job = world.one()
    assert job.id == first
    assert world.served() == []
    world.advance(3_000)
    one = below(world)
    add(world, job, one)
    assert world.ids(1) == [second]
    end(world, one)
    assert world.state(first) is READY
