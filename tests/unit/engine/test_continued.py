"""What a worker is told of the job before, in the same group."""

from __future__ import annotations

from jobline_server.engine import limits
from jobline_server.engine.decide.groups import decide_update_group
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.engine.rules import DeliveryMode, JobRules
from tests.unit.engine.test_sticky import had, look, pushed


def test_worker_is_told_whether_it_had_the_last_job(world):
    holder, other = had(world, "a", "w1"), world.session("w2")
    pushed(world, "a", "a", "a", "b")
    told = []
    for taker in (holder, other, other, holder):
        look(world)
        look(world, limits.STICKY_MS)
        job = world.one(holder=taker)
        told.append((job.group, job.continues_group))
        if job.group == "a":
            world.ack([(job.id, job.delivery)])
    assert told == [("a", True), ("b", False), ("a", False), ("a", False)]


def test_pull_has_no_memory(world):
    """And what it had is not what the session had before."""
    holder = had(world, "a", "w1")
    pushed(world, "a", "a")
    look(world)
    look(world, limits.STICKY_MS)
    job = world.one()
    assert not job.continues_group
    world.ack([(job.id, job.delivery)])
    assert not world.one(holder=holder).continues_group


def test_job_that_is_not_sticky_makes_another_worker_the_last(world):
    """What the first one keeps in memory does not hold any more."""
    holder = had(world, "a", "w1")
    pushed(world, "a", rules=JobRules(tags=("t",)))
    same = world.one(holder=holder)
    assert same.continues_group
    world.ack([(same.id, same.delivery)])
    pushed(world, "a", rules=JobRules())
    job = world.one(holder=world.session("w2"))
    world.ack([(job.id, job.delivery)])
    pushed(world, "a")
    assert not world.one(holder=holder).continues_group


def test_group_whose_jobs_run_beside_each_other_is_never_continued(world):
    holder = had(world, "a", "w1")
    decide_update_group(world.shard, world.now, "q", "a", GroupSettings(concurrency=2), None)
    pushed(world, "a")
    assert not world.one(holder=holder).continues_group


def test_lease_on_a_reserved_job_that_runs_once_waits_for_its_commit(world):
    holder = had(world, "a", "w1")
    pushed(world, "a", rules=JobRules(sticky=True, delivery_mode=DeliveryMode.ONCE))
    assert world.one(holder=holder).is_once


def test_tenant_of_a_queue_that_became_fair_is_never_continued(world):
    """Its jobs run beside each other, whoever had the last one before."""
    holder = had(world, "a", "w1")
    world.settings(fair=True)
    pushed(world, "a", rules=JobRules())
    assert world.shard.sticky.last.find("q", "a") == holder.session_id
    assert not world.one(holder=holder).continues_group
