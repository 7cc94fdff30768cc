"""Jobs with a TTL: what waits when it ends has ended."""

from __future__ import annotations

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import ReleaseItem
from jobline_server.engine.decide.admin import decide_cancel, decide_promote, decide_retry
from jobline_server.engine.decide.expired import expire_waiting
from jobline_server.engine.decide.queues import decide_delete_queue
from jobline_server.engine.decide.timers import next_deadline
from jobline_server.engine.entries import JobsExpired
from jobline_server.engine.invariants import Violation
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import AckLevel, EndReason, JobOptions, JobState, QueueSettings
from tests.pushed_rows import NewJob
from tests.shard_image import image_of
from tests.unit.engine.effects_of import take_woken
from tests.unit.engine.world import leases_of

TTL_MS = 5_000
RULES = JobRules(ttl_ms=TTL_MS)
SHORT = JobOptions(rules=RULES)
S = JobState


def expired(world) -> dict[int, tuple[JobState, EndReason]]:
    """What ended, and why."""
    return {job_id: (state, record.reason) for job_id, (state, record) in world.ended().items()}


def test_what_waits_when_its_ttl_ends_is_expired(world):
    """Ready and scheduled ones, lots and single jobs, durable or not; in time, and not before."""
    ready, later = world.row(rules=RULES), world.row(rules=RULES, delay_ms=60_000)
    lot = world.plain(b"1", b"2", options=SHORT).first_id
    world.row(rules=RULES, level=AckLevel.MEMORY)
    for_ever = world.row()
    assert next_deadline(world.shard, world.now) == TTL_MS
    world.tick(TTL_MS - 1)
    assert world.counts() == (1, 5, 0)
    assert not world.tick(1)
    world.check()
    ended = expired(world)
    assert ended == dict.fromkeys([ready, later, lot, lot + 1, for_ever - 1], ended[ready])
    assert ended[ready] == (S.EXPIRED, EndReason.EXPIRED)
    assert world.counts() == (0, 1, 0)
    assert world.queue().counts[S.EXPIRED] == 4
    assert world.queue() in take_woken(world.shard)
    assert not world.shard.expiring
    assert world.ids() == [for_ever]
    assert image_of(world.recovered())["jobs"] == image_of(world.shard)["jobs"]


def test_a_queue_may_have_them_dead(world):
    """As it says when they expire."""
    job_id, lot = world.row(rules=RULES), world.plain(b"1", options=SHORT).first_id
    world.settings(expired_to_dead=True)
    world.tick(TTL_MS)
    assert expired(world) == dict.fromkeys([job_id, lot], (S.DEAD, EndReason.EXPIRED))
    assert world.queue().counts[S.DEAD] == 2


def test_new_jobs_take_the_ttl_of_their_queue(world):
    """Their own goes before it, 0 for never; what is there already keeps what it has."""
    before = world.row()
    world.settings(ttl_ms=TTL_MS)
    own = JobOptions(rules=JobRules(ttl_ms=TTL_MS + 1))
    rows = [NewJob(b"1", own, "", 0), NewJob(b"2", JobOptions(), "", 0)]
    first_id = world.push(jobs=rows, payloads=[b"3", b"4"]).first_id
    never = world.plain(b"5", options=JobOptions(rules=JobRules(ttl_ms=0))).first_id
    again = world.plain(b"6").first_id
    assert world.shard.lots.find(again).options is world.shard.lots.find(first_id + 2).options
    world.settings()
    after = world.row()
    world.tick(TTL_MS)
    assert list(expired(world)) == [first_id + 1, first_id + 2, first_id + 3, again]
    world.tick(1)
    assert list(expired(world)) == [first_id]
    assert world.ids() == [before, never, after]


def test_an_active_job_goes_on_and_expires_if_it_comes_back(world):
    """From a lot or alone, released at once or for later, failed or lost; members leave their lot
    for it.
    """
    alone = [world.row(rules=RULES) for _ in range(3)]
    lot = world.plain(*[b"x"] * 4, options=SHORT).first_id
    leases = dict(leases_of(world.lease(6, holder=world.session())))
    world.tick(TTL_MS)
    assert list(expired(world)) == [lot + 3]
    assert world.counts() == (0, 0, 6)
    world.release(ReleaseItem(alone[0], leases[alone[0]]), ReleaseItem(lot, leases[lot], 9_000))
    world.fail(alone[1], leases[alone[1]])
    world.fail(lot + 1, leases[lot + 1], retry_after_ms=0)
    world.check()
    world.tick()
    assert set(expired(world)) == {*alone[:2], lot, lot + 1}
    world.check()
    assert not world.ack([(alone[2], leases[alone[2]])])
    while world.tick(60_000):
        pass
    assert expired(world) == {
        alone[2]: (S.COMPLETED, EndReason.NONE),
        lot + 2: (S.EXPIRED, EndReason.EXPIRED),
    }
    assert not any(world.queue().counts[: S.ACTIVE + 1])


def test_a_member_that_leaves_its_lot_while_it_waits_expires_too(world):
    """Promoted, it stands alone."""
    lot = world.plain(b"1", b"2", b"3", options=SHORT, delay_ms=60_000).first_id
    decide_promote(world.shard, world.now, [lot, lot + 1])
    world.check()
    world.tick(TTL_MS)
    assert sorted(expired(world)) == [lot, lot + 1, lot + 2]


def test_it_expires_before_it_comes_back_to_anybody(world):
    """A job that is due is not leased, though no timer ran yet; those behind it are."""
    short, lot = world.row(rules=RULES), world.plain(b"1", b"2", options=SHORT).first_id
    plain = world.row()
    world.advance(TTL_MS)
    assert world.ids(1) == [plain]
    assert list(expired(world)) == [short, lot, lot + 1]


def test_many_that_are_due_are_not_leased_either(world, monkeypatch):
    """A lease expires a few, and then what it chose: the queue is tried again."""
    monkeypatch.setattr(limits, "EXPIRED_LEASE_JOBS", 1)
    ids = [world.row(rules=RULES) for _ in range(3)]
    lot = world.plain(b"1", b"2", options=SHORT).first_id
    plain = world.row()
    world.advance(TTL_MS)
    take_woken(world.shard)
    assert world.ids(2) == []
    assert take_woken(world.shard) == [world.queue()]
    assert list(expired(world)) == ids
    assert world.ids(3) == [plain]
    assert list(expired(world)) == [lot, lot + 1]
    world.check()


def test_a_large_lot_expires_in_slices(world, monkeypatch):
    """What is left of it is due again; holes are passed over."""
    monkeypatch.setattr(limits, "SLICE_ITEMS", 3)
    lot = world.plain(*[b"x"] * 10, options=SHORT).first_id
    decide_cancel(world.shard, world.now, [lot + 1, lot + 4])
    world.ended()
    world.advance(TTL_MS)
    slices = []
    while True:
        more = expire_waiting(world.shard, world.now, 3)
        world.check()
        slices.append(sorted(expired(world)))
        if not more:
            break
    offsets = [[job_id - lot for job_id in ids] for ids in slices]
    assert offsets == [[0, 2], [3, 5], [6, 7], [8, 9]]


def test_a_retry_by_hand_starts_the_ttl_again(world):
    """Over a restart, too; and a job that was never handed out keeps its counter at zero."""
    world.row(rules=RULES)
    world.tick(TTL_MS)
    [(state, record)] = world.ended().values()
    world.advance(1_000)
    decide_retry(world.shard, world.now, [(record, state)])
    world.commit()
    world.check()
    recovered = world.recovered()
    assert image_of(recovered) == image_of(world.shard)
    assert set(recovered.expiring) == {(world.now.wall_ms + TTL_MS, record.id)}
    world.tick(TTL_MS - 1)
    assert world.counts() == (0, 1, 0)
    world.tick(1)
    assert list(expired(world)) == [record.id]


def test_entries_of_jobs_that_ended_do_not_stay(world):
    """However long their TTL: a year of pushes would fill the memory."""
    rules = JobRules(ttl_ms=limits.TTL_MS_MAX)
    for _ in range(300):
        world.row(rules=rules)
        world.plain(b"1", b"2", options=JobOptions(rules=rules))
        world.ack(leases_of(world.lease()))
        assert len(world.shard.expiring) <= 12
    kept = world.row(rules=rules)
    decide_promote(world.shard, world.now, [kept])
    world.check()
    decide_delete_queue(world.shard, world.now, "q", force=True)
    world.plain(b"1", options=JobOptions(rules=rules))
    world.ack(leases_of(world.lease()))
    assert len(world.shard.expiring) <= 12


def test_jobs_that_could_not_be_expired_are_tried_again(world, monkeypatch):
    """G7: no entry is lost by an exception."""
    job_id = world.row(rules=RULES)
    world.advance(TTL_MS)
    with monkeypatch.context() as patched:
        patched.setattr(type(world.shard), "emit", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            expire_waiting(world.shard, world.now)
    world.tick()
    assert list(expired(world)) == [job_id]


def test_entries_that_are_obsolete_are_passed_over(world):
    """Of a job or lot that expires at another time, or is gone."""
    job_id, lot = world.row(rules=RULES), world.plain(b"1", options=SHORT).first_id
    for first_id in (job_id, lot, 7):
        world.shard.expiring.add(world.now.wall_ms + 1, first_id)
    assert not world.tick(1)
    assert world.counts() == (0, 2, 0)
    assert len(world.shard.expiring) == 2


def test_a_ttl_without_an_entry_is_noticed(world):
    """G7: the invariant itself."""
    job_id = world.row(rules=RULES)
    assert world.shard.expiring.pop_due(world.now.wall_ms + TTL_MS)
    with pytest.raises(Violation, match=f"G7: job {job_id} has a TTL and no entry"):
        world.check()


def test_facts_are_few(world):
    """One for all that are alike, whatever their queues."""
    world.row(rules=RULES)
    world.row(rules=RULES, queue="p")
    world.plain(b"1", b"2", options=SHORT)
    world.journal.clear()
    world.tick(TTL_MS)
    [fact] = [fact for _, fact in world.journal]
    assert isinstance(fact, JobsExpired)
    assert (fact.counts, fact.to_dead) == ([1, 1, 2], False)
    assert QueueSettings().expired_to_dead is False
