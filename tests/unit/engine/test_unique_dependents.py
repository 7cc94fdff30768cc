"""Jobs that wait for their unique keys, for others, or for both; and which are not replaced."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.decide.update import decide_forget_unique_key
from jobline_server.engine.rules import DependencyPolicy
from jobline_server.engine.ties import Claim, Ties
from jobline_server.engine.unique_rule import UniqueMode, UniqueRule
from jobline_server.engine.values import EndReason, PushOutcome
from tests.pushed_outcomes import outcomes_of
from tests.shard_image import image_of
from tests.unit.engine.dependents import BLOCKED, CANCELLED, READY, child, is_free, settle, told

REPLACE, SUPERSEDE = UniqueMode.REPLACE, UniqueMode.SUPERSEDE
CREATED, REPLACED, PARKED = PushOutcome.CREATED, PushOutcome.REPLACED, PushOutcome.PARKED


def keyed(*parents, mode=REPLACE, key="u", **rest):
    """A new job with a unique key that depends on others."""
    job = child(*parents, **rest)
    rules = replace(job.options.rules, unique=UniqueRule(mode))
    options = replace(job.options, rules=rules)
    return job._replace(options=options, ties=Ties(unique_key=key, parents=parents))


def pushed(world, *jobs, **rest):
    """Pushes, and returns an outcome and an id for each job."""
    return outcomes_of(world.push(jobs=jobs, **rest), len(jobs))


def both_waits(world, **rest):
    """A parent, a holder of the key that runs, and a job that waits for both; its id last."""
    parent = world.row()
    [(_, holder)] = pushed(world, keyed())
    leased = {item.id: item for item in world.lease().items()}
    [(outcome, waits)] = pushed(world, keyed(parent, **rest))
    assert outcome is PARKED
    assert world.state(waits) is BLOCKED
    return leased[parent], leased[holder], waits


def ack(world, leased):
    world.ack([(leased.id, leased.delivery)])
    told(world)


def test_a_job_whose_key_is_extended_keeps_its_other_ties(world):
    """What it does if one of its parents fails, among them."""
    ties = Ties("g", "u", (1, 2), Claim(1, 2, parked=True, throttles=True), True, b"\1\2")
    assert all(getattr(ties, each.name) != each.default for each in fields(Ties))
    assert ties.with_claim(Claim(9)) == replace(ties, claim=Claim(9))
    parent = world.row()
    job = keyed(parent)
    job = job._replace(ties=replace(job.ties, on_failure=bytes([DependencyPolicy.IGNORE])))
    [(_, waits)] = pushed(world, job)
    decide_forget_unique_key(world.shard, world.now, "q", "u")
    world.commit()
    settle(world, "fail", parent)
    told(world)
    assert world.state(waits) is READY


@pytest.mark.parametrize("first", ["parent", "holder"])
def test_a_job_that_waits_for_its_key_and_for_a_job_starts_after_both(world, first):
    """G13: whichever comes first."""
    parent, holder, waits = both_waits(world)
    order = [parent, holder] if first == "parent" else [holder, parent]
    ack(world, order[0])
    assert world.state(waits) is BLOCKED
    assert image_of(world.recovered()) == image_of(world.shard)
    ack(world, order[1])
    assert world.state(waits) is READY
    assert world.ids() == [waits]
    assert is_free(world)


def test_the_time_to_be_blocked_ends_with_the_last_parent(world):
    """The key is waited for without an end."""
    parent, holder, waits = both_waits(world, timeout_ms=5_000)
    ack(world, parent)
    world.tick(6_000)
    assert world.state(waits) is BLOCKED
    ack(world, holder)
    assert world.state(waits) is READY


def test_a_job_that_waits_for_its_key_too_fails_with_its_parent(world):
    parent, _, waits = both_waits(world, policy=DependencyPolicy.CANCEL)
    decide_cancel(world.shard, world.now, [parent.id])
    world.ack([(parent.id, parent.delivery)])
    told(world)
    state, record = world.ended()[waits]
    assert (state, record.reason) == (CANCELLED, EndReason.DEPENDENCY_FAILED)
    assert is_free(world)
    assert world.shard.unique.held == 1


def test_a_job_on_which_others_depend_is_not_replaced(world):
    """The push is refused whole, and in one that is not atomic, that job."""
    [(_, first)] = pushed(world, keyed())
    [(_, waits)] = pushed(world, child(first))
    with pytest.raises(Refused) as refused:
        pushed(world, child(), keyed())
    assert (refused.value.kind, refused.value.field) == (
        RefusalKind.JOB_AWAITED,
        "jobs[1].options.unique_key",
    )
    assert pushed(world, keyed(), atomic=False) == [(RefusalKind.JOB_AWAITED, 0)]
    assert world.state(first) is READY
    assert world.state(waits) is BLOCKED


def test_a_parked_job_on_which_others_depend_is_not_replaced_nor_its_holder_cancelled(world):
    [(_, holder)] = pushed(world, keyed())
    world.lease()
    [(_, parked)] = pushed(world, keyed(mode=SUPERSEDE))
    pushed(world, child(parked))
    before = image_of(world.shard)
    assert pushed(world, keyed(mode=SUPERSEDE), atomic=False) == [(RefusalKind.JOB_AWAITED, 0)]
    assert image_of(world.shard)["jobs"] == before["jobs"]
    assert world.shard.jobs[holder].cancel_requested


@pytest.mark.parametrize("how", ["id", "index", "index of a duplicate", "key of a duplicate"])
def test_a_job_on_which_one_of_the_same_push_depends_is_not_replaced(world, how):
    [(_, known)] = pushed(world, keyed(key="u" if how == "id" else "v"))
    jobs = {
        "id": [child(known), keyed()],
        "index": [keyed(), child(indexes=(0,)), keyed()],
        "index of a duplicate": [
            keyed(),
            keyed(mode=UniqueMode.KEEP),
            child(indexes=(1,)),
            keyed(),
        ],
        "key of a duplicate": [
            keyed(job_key="k"),
            keyed(job_key="k"),
            child(indexes=(1,)),
            keyed(),
        ],
    }[how]
    with pytest.raises(Refused) as refused:
        pushed(world, *jobs)
    assert refused.value.kind is RefusalKind.JOB_AWAITED


def test_an_index_of_a_duplicate_stands_for_the_job_that_is_there(world):
    """Also if that is a job of the same push."""
    first, again, waits = pushed(world, keyed(job_key="k"), keyed(job_key="k"), child(indexes=(1,)))
    assert again == (PushOutcome.DUPLICATE, first[1])
    assert world.shard.jobs[waits[1]].ties.parents == (first[1],)


def test_a_job_whose_parent_has_failed_may_be_replaced_in_the_same_push(world):
    """It ends once: as replaced."""
    parent = world.row()
    decide_cancel(world.shard, world.now, [parent])
    world.commit()
    states = {parent: CANCELLED}
    (_, first), (outcome, second) = pushed(world, keyed(parent), keyed(), outcomes=states)
    assert outcome is REPLACED
    assert world.ended()[first][1].reason is EndReason.REPLACED
    assert world.state(second) is READY


def test_a_job_that_waits_for_its_key_alone_comes_with_one_that_waits_for_a_job(world):
    """In one push, each waits for its own."""
    parent = world.row()
    pushed(world, keyed())
    parent_lease, holder_lease = world.lease().items()
    [(outcome, parked), (_, waits)] = pushed(world, keyed(), child(parent))
    assert (outcome, world.state(parked)) == (PARKED, BLOCKED)
    ack(world, holder_lease)
    assert (world.state(parked), world.state(waits)) == (READY, BLOCKED)
    ack(world, parent_lease)
    assert world.ids() == [parked, waits]
    assert is_free(world)
