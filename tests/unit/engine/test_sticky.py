"""Sticky jobs: the next one of a group prefers the session that had the last."""

from __future__ import annotations

from typing import Any

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import ReleaseItem
from jobline_server.engine.decide.groups import (
    decide_pause_group,
    decide_resume_group,
)
from jobline_server.engine.decide.limiters import decide_put_limiter
from jobline_server.engine.decide.timers import next_deadline, open_gates
from jobline_server.engine.decide.update import JobChange, decide_update
from jobline_server.engine.holder import Holder
from jobline_server.engine.lane import size_of
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.rules import JobRules
from jobline_server.engine.sticky import LastSessions, has_own, own_fronts, own_names, take_woken
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import JobOptions
from tests.pushed_rows import NewJob
from tests.unit.engine.world import World

STICKY = JobRules(sticky=True)


def pushed(world: World, *groups: str, rules: JobRules = STICKY, **options: Any) -> list[int]:
    made = JobOptions(rules=rules, **options)
    result = world.push(jobs=[NewJob(b"x", made, ties=Ties(group)) for group in groups])
    return list(range(result.first_id, result.first_id + result.count))


def had(world: World, group: str, worker: str) -> Holder:
    """A worker that has had a job of a group."""
    holder = world.session(worker)
    pushed(world, group)
    job = world.one(holder=holder)
    world.ack([(job.id, job.delivery)])
    world.check()
    return holder


def look(world: World, ms: int = 0) -> int:
    """Time goes on, and the timers look; returns how many queues may have jobs to dispatch."""
    world.advance(ms)
    return len(open_gates(world.shard, world.now))


def test_next_job_of_a_group_waits_for_the_worker_that_had_the_last(world):
    """Also if the group was idle, and so forgotten, in between."""
    holder = had(world, "a", "w1")
    [job_id] = pushed(world, "a")
    assert world.ids(holder=world.session("w2")) == []
    assert world.ids() == []
    assert world.queue().in_reach() == 0
    world.check()
    assert world.ids(holder=holder) == [job_id]
    world.check()


def test_after_five_seconds_anybody_gets_it(world):
    """The time begins when the timers look first."""
    had(world, "a", "w1")
    [job_id] = pushed(world, "a")
    assert next_deadline(world.shard, world.now) == 0
    assert look(world) == 0
    assert next_deadline(world.shard, world.now) == limits.STICKY_MS
    assert look(world, limits.STICKY_MS - 1) == 0
    assert world.ids(holder=world.session("w2")) == []
    assert look(world, 1) == 1
    world.check()
    assert world.ids(holder=world.session("w2")) == [job_id]
    assert look(world, 10_000) == 0


def test_worker_that_takes_no_more_gives_its_jobs_away_at_once(world):
    had(world, "a", "w1")
    holder = had(world, "b", "w1")
    ids = pushed(world, "a", "b")
    world.shard.sticky.leave(world.queue(), holder.session_id)
    world.shard.sticky.leave(world.queue(), "nobody")
    assert next_deadline(world.shard, world.now) == 0
    assert look(world) == 1
    world.check()
    assert world.ids(holder=world.session("w2")) == ids
    assert look(world) == 0


def test_jobs_of_two_sessions_and_queues_are_given_away_together(world):
    """Whichever left, and whatever was leased or changed meanwhile."""
    holders = [had(world, "a", "w1"), had(world, "b", "w2")]
    ids = pushed(world, "a", "b")
    for holder in holders:
        world.shard.sticky.leave(world.queue(), holder.session_id)
    assert look(world) == 1
    assert world.ids(holder=world.session("w3")) == ids
    world.check()


def test_job_that_was_leased_in_time_is_not_given_away(world):
    holder = had(world, "a", "w1")
    [job_id] = pushed(world, "a")
    look(world)
    world.shard.sticky.leave(world.queue(), holder.session_id)
    assert world.ids(holder=holder) == [job_id]
    assert look(world, limits.STICKY_MS) == 0
    world.check()


def test_no_step_gives_away_more_than_a_slice(world, monkeypatch):
    monkeypatch.setattr(limits, "STICKY_SLICE_JOBS", 2)
    holder = had(world, "a", "w1")
    had(world, "b", "w1")
    had(world, "c", "w1")
    ids = pushed(world, *"abc")
    world.shard.sticky.leave(world.queue(), holder.session_id)
    assert look(world) == 1
    assert world.ids(holder=world.session("w2")) == ids[:2]
    assert next_deadline(world.shard, world.now) == 0
    assert look(world) == 1
    assert world.ids(holder=world.session("w2")) == ids[2:]


def test_those_that_are_due_are_given_away_in_slices_too(world, monkeypatch):
    for group in "abc":
        had(world, group, "w1")
    ids = pushed(world, *"abc")
    look(world)
    monkeypatch.setattr(limits, "STICKY_SLICE_JOBS", 2)
    look(world, limits.STICKY_MS)
    assert world.ids(holder=world.session("w2")) == ids[:2]
    look(world)
    assert world.ids(holder=world.session("w2")) == ids[2:]


def test_retry_goes_to_the_same_worker_first(world):
    holder = world.session("w1")
    [job_id] = pushed(world, "a")
    job = world.one(holder=holder)
    world.fail(job.id, job.delivery, retry_after_ms=0)
    assert world.ids(holder=world.session("w2")) == []
    again = world.one(holder=holder)
    assert (again.id, again.continues_group) == (job_id, True)
    world.check()


def test_job_that_a_worker_gives_back_is_everybodys(world):
    holder = had(world, "a", "w1")
    pushed(world, "a")
    job = world.one(holder=holder)
    world.release(ReleaseItem(job.id, job.delivery))
    assert world.ids(holder=world.session("w2")) == [job.id]
    world.check()


def test_paused_group_forgets_whose_its_job_was_and_finds_it_again(world):
    holder = had(world, "a", "w1")
    [job_id] = pushed(world, "a")
    decide_pause_group(world.shard, world.now, "q", "a", "ann", "")
    world.commit()
    world.check()
    assert world.ids(holder=holder) == []
    decide_resume_group(world.shard, world.now, "q", "a")
    world.commit()
    assert world.ids(holder=world.session("w2")) == []
    assert world.ids(holder=holder) == [job_id]


def test_reserved_job_that_is_changed_is_found_and_taken_once(world):
    holder = had(world, "a", "w1")
    [job_id] = pushed(world, "a")
    large = b"x" * (limits.MESSAGE_BYTES_DEFAULT)
    assert size_of(len(large)) == 1
    decide_update(world.shard, world.now, job_id, JobChange(payload=large))
    world.commit()
    world.check()
    assert world.ids(holder=holder) == [job_id]
    look(world, limits.STICKY_MS)


def test_older_jobs_go_before_those_that_are_reserved(world):
    """A worker whose entities never rest does not leave all others waiting."""
    holder = had(world, "a", "w1")
    [plain] = pushed(world, "", rules=JobRules())
    [mine] = pushed(world, "a")
    [later] = pushed(world, "", rules=JobRules())
    assert world.ids(holder=holder) == [plain, mine, later]


def test_own_lanes_are_chosen_by_name_size_and_version(world):
    had(world, "a", "w1")
    rules = JobRules(sticky=True, min_worker_version="1.2")
    pushed(world, "a", rules=rules, name="mail")
    session, queue = "session of w1", world.queue()
    assert own_names(queue, session) == {"mail"}
    assert (has_own(queue, session), has_own(queue, "nobody")) == (True, False)
    found = own_fronts(queue, session, None, None, "1.10")
    assert [lane.name for lane in found[0]] == ["mail"]
    assert own_fronts(queue, session, frozenset({"x"}), None, "1.10") == {}
    assert own_fronts(queue, session, None, -1, "1.10") == {}
    assert own_fronts(queue, session, None, None, "1.1") == {}
    assert own_fronts(queue, "nobody", None, None, "1.10") == {}


def test_lane_that_a_limiter_closed_is_closed_to_its_session(world):
    decide_put_limiter(world.shard, world.now, "smtp", None, 1)
    world.commit()
    world.shard.restart_leases(world.now)
    rules = JobRules(sticky=True, limiters=("smtp",))
    holder = world.session("w1")
    for group in "ab":
        pushed(world, group, rules=rules)
        job = world.one(holder=holder)
        world.ack([(job.id, job.delivery)])
    first, second = pushed(world, "a", "b", rules=rules)
    world.check()
    assert world.ids(1, holder=holder) == [first]
    assert world.ids(holder=holder) == []
    assert world.queue().gates.own == {}
    world.check()
    world.ack([(first, world.shard.jobs[first].delivery)])
    world.shard.limiters.open_due(world.now, 10)
    world.check()
    assert world.ids(holder=world.session("w2")) == [second]


def test_rate_holds_for_the_sessions_own_jobs(world):
    holder = had(world, "a", "w1")
    had(world, "b", "w1")
    world.settings(rate=RateLimit(1, 1_000))
    first, _ = pushed(world, "a", "b")
    assert world.ids(holder=holder) == [first]
    assert world.ids(holder=holder) == []


def test_job_may_take_several_places_of_its_sessions_window(world):
    holder = had(world, "a", "w1")
    had(world, "b", "w1")
    first, _ = pushed(world, "a", "b", rules=JobRules(sticky=True, slots=2))
    assert world.ids(3, holder=holder) == [first]


def test_after_a_restart_nobody_has_had_anything(world):
    """The journal has hand-outs from the middle of a lane; and what was reserved is everybody's."""
    holder = had(world, "a", "w1")
    had(world, "d", "w1")
    [older] = pushed(world, "b")
    [first, second] = [pushed(world, "a")[0], pushed(world, "c")[0]]
    assert world.ids(1, holder=holder) == [older]
    assert world.ids(holder=holder)[:1] == [first]
    [third] = pushed(world, "d")
    recovered = world.recovered()
    assert recovered.jobs[third].reserved_for == "session of w1"
    recovered.restart_leases(world.now)
    queue = recovered.queues["q"]
    assert (queue.gates.own, queue.gates.shut, bool(recovered.sticky.last)) == ({}, 0, False)
    assert queue.in_reach() == 1
    assert {second, third} <= {*recovered.jobs}


def test_sessions_are_offered_what_is_on_disk(world):
    had(world, "a", "w1")
    pushed(world, "a")
    queue, shard = world.queue(), world.shard
    assert take_woken(queue, shard.committed - 1) == []
    assert take_woken(queue, shard.committed) == ["session of w1"]
    assert take_woken(queue, shard.committed) == []


def test_half_of_the_groups_are_forgotten_when_they_are_too_many(monkeypatch):
    monkeypatch.setattr(limits, "STICKY_GROUPS_MAX", 4)
    last = LastSessions()
    for group in "abc":
        last.note("q", group, f"s{group}")
    assert [last.find("q", group) for group in "abc"] == ["sa", "sb", "sc"]
    last.note("q", "c", "other")
    last.note("q", "d", "sd")
    last.note("q", "e", "se")
    assert [last.find("q", group) for group in "abcde"] == ["", "", "other", "sd", "se"]
    last.note("q", "c", "")
    assert (last.find("q", "c"), bool(last)) == ("", True)


@pytest.mark.parametrize("count", [3, 300])
def test_pull_of_another_worker_examines_none_of_what_is_reserved(world, count):
    groups = [f"g{number}" for number in range(count)]
    holder = world.session("w1")
    pushed(world, *groups)
    taken = [(job.id, job.delivery) for job in world.lease(holder=holder, most=1_000).jobs]
    world.ack(taken)
    pushed(world, *groups)
    assert list(world.queue().open.fronts(None, None)) == []
    assert len(world.ids(1_000, holder=holder)) == count
