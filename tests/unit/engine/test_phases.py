"""Phases of a job: finished one after the other, once, and kept over attempts."""

from __future__ import annotations

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import ExtendItem, RefusalKind, Refused
from jobline_server.engine.decide.admin import decide_retry
from jobline_server.engine.decide.phases import check_phases
from jobline_server.engine.phases import FinishedPhase, overall_progress, progress_within
from jobline_server.engine.report_entries import PhaseCompleted
from jobline_server.engine.reported import error_bytes
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import FailAction, JobOptions, SettleOutcome
from tests.shard_image import image_of
from tests.unit.engine.world import ERROR, WALL_MS

THREE = JobRules(phases=("parse", "load", "check"))


def finish(world, job_id, delivery, phase, result=b"", **rest):
    return world.extend(ExtendItem(job_id, delivery, phase=phase, phase_result=result, **rest))


def details_of(world, job_id):
    return world.shard.jobs[job_id].details


@pytest.mark.parametrize(
    ("finished", "percent", "count", "overall"),
    [(0, 0.0, 4, 0.0), (1, 50.0, 4, 37.5), (3, 100.0, 4, 100.0), (2, 0.0, 3, 200 / 3)],
)
def test_progress_of_a_job_is_made_of_that_of_its_phase(finished, percent, count, overall):
    """((index + phase / 100) / count) × 100, and back."""
    assert overall_progress(finished, percent, count) == pytest.approx(overall)
    assert progress_within(finished, overall, count) == pytest.approx(percent)


def test_finished_phases_are_kept_with_times_and_results(world):
    """The first begins with its attempt, the next with the end of the one before."""
    job_id = world.row(rules=THREE)
    delivery = world.one().delivery
    world.advance(1_000)
    assert finish(world, job_id, delivery, "parse", b"rows") == []
    world.advance(2_000)
    finish(world, job_id, delivery, "load")
    assert details_of(world, job_id).phases == (
        FinishedPhase(WALL_MS, WALL_MS + 1_000, 1, b"rows"),
        FinishedPhase(WALL_MS + 1_000, WALL_MS + 3_000, 1, b""),
    )
    assert details_of(world, job_id).progress == pytest.approx(200 / 3)
    assert world.shard.report_bytes == 4
    world.check()
    assert image_of(world.recovered()) == image_of(world.shard)


def test_a_member_of_a_lot_leaves_it_with_its_first_phase(world):
    options = JobOptions(rules=THREE)
    first_id = world.plain(b"1", b"2", options=options).first_id
    delivery = world.lease().runs[0].delivery
    assert finish(world, first_id, delivery, "parse", progress=50.0) == []
    assert len(details_of(world, first_id).phases) == 1
    assert details_of(world, first_id).progress == pytest.approx(50.0)
    world.check()


def test_the_end_of_a_phase_that_is_said_twice_is_one_fact(world):
    """The first reply may have been lost."""
    job_id = world.row(rules=THREE)
    delivery = world.one().delivery
    for _ in range(2):
        assert finish(world, job_id, delivery, "parse", b"1") == []
    facts = [fact for _, fact in world.journal if isinstance(fact, PhaseCompleted)]
    assert len(facts) == 1


def test_a_retry_begins_behind_the_finished_phases_and_has_their_results(world):
    job_id = world.row(rules=THREE)
    delivery = world.one().delivery
    finish(world, job_id, delivery, "parse", b"rows")
    world.fail(job_id, delivery, retry_after_ms=0)
    again = world.one()
    assert [phase.result for phase in again.phases] == [b"rows"]
    finish(world, job_id, again.delivery, "load")
    assert [phase.attempt for phase in details_of(world, job_id).phases] == [1, 2]


def test_a_finished_phase_forgives_stalls(world):
    """As a new checkpoint does."""
    job_id = world.row(rules=THREE)
    world.lease()
    world.tick(60_000)
    job = world.one()
    assert world.shard.jobs[job_id].stalls == 1
    finish(world, job_id, job.delivery, "parse")
    assert world.shard.jobs[job_id].stalls == 0


def test_progress_is_that_of_the_current_phase(world):
    job_id = world.row(rules=THREE)
    delivery = world.one().delivery
    world.extend(ExtendItem(job_id, delivery, progress=50.0))
    assert details_of(world, job_id).progress == pytest.approx(100 / 6)
    finish(world, job_id, delivery, "parse")
    world.extend(ExtendItem(job_id, delivery, progress=30.0, message="m"))
    assert details_of(world, job_id).progress == pytest.approx(130 / 3)
    world.extend(ExtendItem(job_id, delivery, message="n"))
    assert details_of(world, job_id).progress == pytest.approx(130 / 3)


def check(world, *items):
    places = [f"items[{index}]" for index in range(len(items))]
    check_phases(world.shard, zip(places, items, strict=True), {})


def test_a_phase_of_a_lost_lease_is_refused(world):
    job_id = world.row(rules=THREE)
    delivery = world.one().delivery
    check(world, ExtendItem(job_id, delivery + 1, phase="no such"))
    lost = finish(world, job_id, delivery + 1, "parse")
    assert lost == [(0, SettleOutcome.LEASE_LOST)]
    check(world, ExtendItem(4711, 1, phase="parse"))


def refusal_of(world, *items):
    with pytest.raises(Refused) as refused:
        check(world, *items)
    return refused.value.kind, refused.value.field, refused.value.message


def test_phases_end_in_their_order_and_no_other(world):
    """Nothing of the call is done; several phases of one call are checked one after the other."""
    job_id = world.row(rules=THREE)
    delivery = world.one().delivery

    def item(phase, result=b""):
        return ExtendItem(job_id, delivery, phase=phase, phase_result=result)

    wrong = (RefusalKind.WRONG_STATE, "items[0].phase")
    assert refusal_of(world, item("load")) == (*wrong, f"job {job_id} is at its phase 'parse'")
    assert refusal_of(world, item("x")) == (*wrong, f"job {job_id} has no such phase")
    assert refusal_of(world, item("parse"), item("check"))[1] == "items[1].phase"
    check(world, item("parse"), item("load"), item("parse"), item("check"))
    assert finish(world, job_id, delivery, "check") == []  # unchecked: it changes nothing
    assert details_of(world, job_id).phases == ()
    finish(world, job_id, delivery, "parse")
    check(world, item("parse"), item("load"))


def test_a_job_without_phases_finishes_none(world):
    first_id = world.plain(b"1").first_id
    delivery = world.lease().runs[0].delivery
    kind, _, _ = refusal_of(world, ExtendItem(first_id, delivery, phase="parse"))
    assert kind is RefusalKind.WRONG_STATE


def test_results_of_all_phases_have_one_limit(world):
    """They come with each lease, beside the payload."""
    job_id = world.row(rules=THREE)
    delivery = world.one().delivery
    finish(world, job_id, delivery, "parse", b"x" * (limits.PHASE_RESULTS_BYTES_MAX - 1))
    check(world, ExtendItem(job_id, delivery, phase="load", phase_result=b"x"))
    item = ExtendItem(job_id, delivery, phase="load", phase_result=b"xx")
    assert refusal_of(world, item)[:2] == (RefusalKind.TOO_LARGE, "items[0].phase_result")


def ended(world, rules, phases, **settle):
    """A job that ended after these phases, and was retried by hand."""
    job_id = world.row(rules=rules)
    delivery = world.one().delivery
    for phase in phases:
        finish(world, job_id, delivery, phase, b"r")
    world.fail(job_id, delivery, then=FailAction.DEAD)
    state, record = world.ended()[job_id]
    assert len(record.phases) == len(phases)
    assert record.held_bytes() == 1 + len(phases) + error_bytes(ERROR)
    assert world.shard.report_bytes == 0
    decide_retry(world.shard, world.now, [(record, state)])
    world.commit()
    world.check()
    return details_of(world, job_id)


def test_a_job_that_is_retried_by_hand_keeps_its_finished_phases(world):
    details = ended(world, THREE, ["parse"])
    assert [phase.result for phase in details.phases] == [b"r"]
    assert details.progress == pytest.approx(100 / 3)


def test_a_job_that_had_finished_all_phases_starts_over(world):
    """Somebody wants it done again."""
    details = ended(world, THREE, THREE.phases)
    assert (details.phases, details.progress) == ((), 0.0)
