"""Children that a running job adds to itself: what it waits for, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import ExtendItem, RefusalKind, Refused
from jobline_server.engine.decide.add_children import (
    FlowParent,
    decide_add_children,
    decide_set_aside,
)
from jobline_server.engine.decide.admin import decide_cancel, decide_retry
from jobline_server.engine.decide.dependencies import release_dependents
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.values import (
    AckLevel,
    AttemptOutcome,
    EndReason,
    LeaseReason,
    SettleOutcome,
)
from tests.shard_image import image_of
from tests.unit.engine.added_children import add, below, end
from tests.unit.engine.dependents import (
    BLOCKED,
    CANCEL,
    CANCELLED,
    DEAD,
    IGNORE,
    READY,
    WAIT,
    child,
    is_free,
    push,
    told,
)
from tests.unit.engine.world import World

LOST = SettleOutcome.LEASE_LOST
NOWHERE = 1 << 43 | 987_654_321


def refusal(world: World, parent: FlowParent, children: int = 1) -> Refused:
    before = image_of(world.shard)
    with pytest.raises(Refused) as refused:
        decide_set_aside(world.shard, world.now, parent, children)
    assert not world.shard.entries
    assert image_of(world.shard) == before
    return refused.value


def test_job_waits_for_its_new_children_and_is_handed_out_again(world):
    """It uses up neither an attempt nor a stall nor a release, and keeps its checkpoint."""
    parent = world.row()
    job = world.one()
    world.extend(ExtendItem(job.id, job.delivery, worker_checkpoint=b"half"))
    one, two = below(world), below(world)
    add(world, job, one, two)
    assert world.state(parent) is BLOCKED
    assert world.counts() == (0, 0, 0)
    assert world.ack([(job.id, job.delivery)]) == [(0, LOST)]
    end(world, one)
    assert world.state(parent) is BLOCKED
    end(world, two)
    again = world.one()
    assert (again.id, again.attempt) == (parent, 1)
    assert again.delivery > job.delivery
    assert (again.reason, again.worker_checkpoint) == (LeaseReason.CHILDREN_ENDED, b"half")
    record = world.shard.jobs[parent]
    assert (record.attempts, record.stalls, record.releases) == (0, 0, 0)
    assert [one.outcome for one in record.details.history] == [AttemptOutcome.RELEASED]
    assert record.ties.parents == (one, two)
    assert is_free(world)
    assert world.ack([(again.id, again.delivery)]) == []
    world.check()


def test_job_of_a_lot_and_one_that_had_children(world):
    """A member of a lot leaves it; old and new children stand in their order."""
    lot = world.plain(b"a", b"b", b"c")
    [run] = world.lease(2).runs
    one = below(world)
    job = FlowParent(lot.first_id + 1, run.delivery)
    add(world, job, one)
    assert world.counts() == (0, 1, 1)
    assert world.ack([(lot.first_id, run.delivery)]) == []
    end(world, one)
    again = next(leased for leased in world.lease(queue="q").jobs if leased.id == job.id)
    two = below(world)
    add(world, again, two)
    assert world.shard.jobs[job.id].ties.parents == (one, two)
    end(world, two)
    assert world.state(job.id) is READY
    assert is_free(world)


@pytest.mark.parametrize(
    ("policy", "state"), [(None, DEAD), (CANCEL, CANCELLED), (IGNORE, READY), (WAIT, BLOCKED)]
)
def test_policy_decides_when_a_child_fails(world, policy, state):
    rules = replace(NO_RULES, on_dependency_failure=policy)
    parent = world.row(rules=rules)
    job = world.one()
    failing = below(world)
    add(world, job, failing)
    world.ended()
    end(world, failing, how="fail")
    ended = world.ended()
    if state in (DEAD, CANCELLED):
        assert (ended[parent][0], ended[parent][1].reason) == (state, EndReason.DEPENDENCY_FAILED)
        assert ended[parent][1].ties.parents == (failing,)
    else:
        assert world.state(parent) is state


def test_child_that_is_gone_before_its_parent_waits(world):
    """Its queue was drained between two slices: the policy decides at once."""
    ignores = world.row(rules=replace(NO_RULES, on_dependency_failure=IGNORE))
    add(world, world.one(), NOWHERE)
    assert world.state(ignores) is READY
    world.ack([(ignores, world.one().delivery)])
    fails = world.row()
    job = world.one()
    world.ended()
    add(world, job, NOWHERE)
    told(world)
    assert world.ended()[fails][0] is DEAD
    assert is_free(world)


@pytest.mark.parametrize("how", ["cancel", "expire"])
def test_parent_that_ends_while_its_children_are_pushed(world, how):
    """They are jobs like any others then."""
    rules = replace(NO_RULES, ttl_ms=1_000) if how == "expire" else NO_RULES
    parent = world.row(rules=rules)
    job = world.one()
    lease = FlowParent(job.id, job.delivery)
    decide_set_aside(world.shard, world.now, lease, 1)
    if how == "cancel":
        decide_cancel(world.shard, world.now, [parent])
    else:
        world.tick(2_000)
    one = below(world)
    left = decide_add_children(world.shard, world.now, lease, [one], {})
    world.commit()
    world.check()
    assert left == ()
    assert (world.state(parent), world.state(one)) == (None, READY)
    assert is_free(world)


def test_stale_lease_changes_nothing(world):
    job_id = world.row()
    job = world.one()
    assert refusal(world, FlowParent(job.id, job.delivery - 1)).kind is RefusalKind.LEASE_LOST
    assert refusal(world, FlowParent(NOWHERE, job.delivery)).kind is RefusalKind.LEASE_LOST
    one = below(world)
    add(world, job, one)
    assert refusal(world, FlowParent(job.id, job.delivery)).kind is RefusalKind.LEASE_LOST
    assert world.state(job_id) is BLOCKED


def test_job_that_was_cancelled_is_settled_first(world):
    world.row()
    job = world.one()
    decide_cancel(world.shard, world.now, [job.id])
    world.commit()
    refused = refusal(world, FlowParent(job.id, job.delivery))
    assert (refused.kind, "was cancelled" in refused.message) == (RefusalKind.WRONG_STATE, True)


def test_job_in_memory_alone_cannot_wait(world):
    """After a restart the journal would name a job that is not there."""
    lot = world.plain(b"a", level=AckLevel.MEMORY)
    [run] = world.lease().runs
    refused = refusal(world, FlowParent(lot.first_id, run.delivery))
    assert refused.kind is RefusalKind.WRONG_STATE


def test_children_have_a_limit_that_counts_those_before(world, monkeypatch):
    monkeypatch.setattr(limits, "PARENTS_MAX", 2)
    world.row()
    job = world.one()
    full = refusal(world, FlowParent(job.id, job.delivery), 3)
    assert (full.kind, full.field) == (RefusalKind.TOO_LARGE, "jobs")
    assert "has 0 children and would get 3 more, of at most 2 in all" in str(full)
    one, two = below(world), below(world)
    add(world, job, one, two)
    end(world, one, two)
    job = world.one()
    assert refusal(world, FlowParent(job.id, job.delivery), 1).kind is RefusalKind.TOO_LARGE


def test_job_whose_children_failed_is_retried_by_hand(world):
    world.row()
    job = world.one()
    failing = below(world)
    add(world, job, failing)
    world.ended()
    end(world, failing, how="fail")
    decide_retry(world.shard, world.now, [world.ended()[job.id][::-1]])
    world.commit()
    assert world.one().id == job.id
    world.check()


def test_children_of_another_shard_are_awaited(world):
    """By a message to it, and their ends are looked up until it has answered."""
    world.row()
    job = world.one()
    elsewhere = 2 << 43 | 5
    lease = FlowParent(job.id, job.delivery)
    decide_set_aside(world.shard, world.now, lease, 1)
    left = decide_add_children(world.shard, world.now, lease, [elsewhere], {})
    world.commit()
    world.check()
    assert left == (elsewhere,)
    [sent] = world.shard.messages.outbox(2)
    assert (sent.message.ids, sent.message.by_shard) == ((elsewhere,), 1)


def test_dependents_of_the_job_wait_until_it_has_completed(world):
    parent = world.row()
    waits = push(world, child(parent))
    job = world.one()
    one = below(world)
    add(world, job, one)
    end(world, one)
    assert world.state(waits) is BLOCKED
    again = world.one()
    world.ack([(again.id, again.delivery)])
    release_dependents(world.shard, world.now, 10)
    world.commit()
    assert world.state(waits) is READY


def test_policy_about_a_child_that_was_added(world):
    """It is not that about the children before, which have none, nor that of the job."""
    parent = world.row(rules=replace(NO_RULES, on_dependency_failure=CANCEL))
    before = below(world)
    add(world, world.one(), before)
    end(world, before)
    after, spare, strict = below(world), below(world), below(world)
    add(world, world.one(), after, spare, strict, on_failure=bytes([0, IGNORE, 0]))
    ties = world.recovered().jobs[parent].ties
    assert (ties.parents, ties.policy_at(2)) == ((before, after, spare, strict), IGNORE)
    end(world, spare, how="dead")
    assert world.state(parent) is BLOCKED
    end(world, after)
    world.ended()
    end(world, strict, how="dead")
    assert world.ended()[parent][0] is CANCELLED
