"""Each invariant notices when it is broken, and says which promise that is."""

from __future__ import annotations

import pytest

from jobline_server.engine import invariants
from jobline_server.engine.decide.messages import decide_send
from jobline_server.engine.holder import Holder
from jobline_server.engine.keys import KeyRecord
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.producers import Call
from jobline_server.engine.shard_messages import PushJobs
from jobline_server.engine.values import JobOptions, JobState


@pytest.fixture
def lot(world):
    """Four plain jobs, two of them leased to a session, in a world that keeps all promises."""
    world.plain(b"1", b"2", b"3", b"4")
    world.lease(2, holder=world.session())
    [found] = world.shard.lots.lots.values()
    world.check()
    return found


@pytest.fixture
def job(world):
    """A single job leased to a session."""
    job_id = world.row()
    world.lease(1, holder=world.session())
    world.check()
    return world.shard.jobs[job_id]


def broken(world) -> str:
    with pytest.raises(invariants.Violation) as violation:
        world.check()
    return str(violation.value)


def test_lot_that_miscounts_is_noticed(world, lot):
    lot.remaining -= 1
    assert broken(world) == f"G19: lot {lot.first_id}: 2 wait, 2 leased, 3 remain"


def test_job_in_its_lot_and_beside_it_is_noticed(world, lot):
    """Looked at alone, as other promises break with this one."""
    single = world.shard.jobs[world.row()]
    world.shard.jobs[lot.first_id + 3] = single
    problem = invariants.one_state_each(world.shard)
    assert problem == f"job {lot.first_id + 3} is in its lot and beside it"


def test_ended_job_that_still_lives_is_noticed(world, job):
    job.state = JobState.COMPLETED
    assert invariants.one_state_each(world.shard) == f"job {job.id} is COMPLETED and still live"


def test_wrong_counts_are_noticed(world, lot):
    queue = world.queue()
    queue.counts[JobState.SCHEDULED] += 1
    assert broken(world) == (
        "G19: queue q counts {'SCHEDULED': 1, 'BLOCKED': 0, 'READY': 2, 'ACTIVE': 2}, "
        "holds {'SCHEDULED': 0, 'BLOCKED': 0, 'READY': 2, 'ACTIVE': 2}"
    )
    queue.counts[JobState.SCHEDULED] -= 1
    queue.counts[JobState.DEAD] = -1
    assert broken(world).startswith("G19: queue q counts [")
    queue.counts[JobState.DEAD] = 0
    next(iter(queue.lanes())).ready += 1
    assert broken(world) == "G19: queue q: lanes do not hold 2 ready jobs"


def test_lanes_that_nobody_counts_or_looks_at_are_noticed(world, lot):
    queue = world.queue()
    lane = next(iter(queue.lanes()))
    queue.ready.add(lane, 1)
    assert "ready jobs" in invariants.lanes_add_up(world.shard)
    queue.ready.add(lane, -1)
    lane.opens_ms = 1
    assert "its ranks hold" in invariants.lanes_add_up(world.shard)


def test_wrong_load_is_noticed(world, lot):
    world.shard.load.live_jobs += 1
    assert broken(world) == "G19: load says 5 live jobs"
    world.shard.load.live_jobs -= 1
    world.shard.load.payload_bytes += 1
    assert broken(world) == "G19: load says 5 bytes of 4"
    world.queue().payload_bytes -= 1
    assert broken(world) == "G19: queue q counts 3 bytes, holds 4"


def test_bytes_of_single_jobs_are_counted(world, job):
    job.payload = b"longer"
    assert invariants.bytes_add_up(world.shard) == "queue q counts 1 bytes, holds 6"


def test_lane_out_of_order_is_noticed(world):
    one, two = world.row(), world.row()
    jobs = world.shard.jobs
    jobs[one].order, jobs[two].order = jobs[two].order, jobs[one].order
    assert broken(world) == "G12: queue q: a lane is out of order"


def test_job_in_the_wrong_lane_is_noticed(world):
    world.shard.jobs[world.row()].options = JobOptions(priority=5)
    assert broken(world) == "G12: queue q: an item is in the wrong lane"


def test_ready_job_in_no_lane_is_noticed(world):
    world.row()
    next(iter(world.queue().lanes())).items.clear()
    assert broken(world) == "G12: a ready job is in no lane"


def test_active_job_without_a_holder_is_noticed(world, job):
    job.holder = None
    assert broken(world) == f"G8: job {job.id} is ACTIVE and its holder None"


def test_holder_that_does_not_know_its_job_is_noticed(world, job):
    job.holder = Holder("w2", "s2")
    assert broken(world) == f"G8: the holder of job {job.id} does not list it"


def test_counter_of_a_later_epoch_is_noticed(world, job):
    job.delivery = 1 << 60
    assert broken(world) == f"G8: job {job.id} has a delivery of a later epoch"


def test_lease_past_the_cursor_is_noticed(world, lot):
    lot.cursor = 1
    assert broken(world) == f"G8: leases of lot {lot.first_id} overlap or run past its cursor"


def test_lease_that_miscounts_is_noticed(world, lot):
    lot.leases[0].remaining = 1
    assert broken(world) == f"G8: a lease of lot {lot.first_id} miscounts"


def test_session_that_holds_leases_and_is_forgotten_is_noticed(world, lot):
    world.shard.clocks.holders.clear()
    assert broken(world) == "G8: session session of w1 holds leases and is forgotten"


def test_holder_that_does_not_know_its_run_is_noticed(world, lot):
    lot.leases[0].holder = Holder("w2", "s2")
    assert broken(world) == f"G8: the holder of a run of lot {lot.first_id} does not list it"


def test_window_smaller_than_what_is_held_is_noticed(world, lot):
    in_flight = lot.leases[0].holder.in_flight
    in_flight.jobs = 1
    assert broken(world) == "G8: session session of w1 holds 2 jobs and counts 1"
    in_flight.jobs, in_flight.payload_bytes = 2, 1
    assert broken(world) == "G8: session session of w1 does not count 2 bytes that it holds"


def test_offset_that_does_not_exist_is_noticed(world, lot):
    lot.offset = world.shard.next_offset + 1
    assert broken(world) == "G3: an item carries an offset that does not exist yet"


def test_volatile_job_that_waits_for_a_commit_is_noticed(world, lot):
    lot.volatile = True
    assert broken(world) == "G3: a volatile item waits for a commit"


def test_id_that_would_be_given_again_is_noticed(world, lot):
    world.shard.next_sequence -= 1
    assert broken(world).startswith(f"G10: id {lot.first_id + 3} is not below")


def test_what_is_put_off_and_forgotten_is_noticed(world):
    job_id, lot_id = world.row(delay_ms=5), world.plain(b"1", delay_ms=5).first_id
    world.check()
    world.shard.delayed.sweep(1, lambda _, first_id: first_id != lot_id)
    assert broken(world) == f"G7: lot {lot_id} is delayed and has no entry"
    world.shard.delayed.pop_due(world.now.wall_ms + 5)
    assert broken(world) == f"G7: job {job_id} is delayed and has no entry"


def test_key_of_a_job_that_never_was_is_noticed(world):
    world.shard.keys.add(b"1" * 16, KeyRecord(1 << 50, 1, 0, 1))
    assert broken(world) == f"G6: a key points to {1 << 50}, which was never used"


def test_empty_shard_keeps_every_promise(world):
    world.check()


def test_wrong_number_of_active_jobs_is_noticed(world, lot):
    world.shard.load.active_jobs += 1
    assert broken(world) == "G19: load says 3 active jobs"


def test_wrong_blocks_are_noticed(world, lot):
    world.queue().blocks.add([1 << 40], neighbours=True)
    assert invariants.blocks_add_up(world.shard).startswith("queue q counts {")


def test_call_of_a_job_that_never_was_is_noticed(world):
    world.push(payloads=[b"x"], calls=(Call(b"p" * 16, 1, 0, 7),))
    world.check()
    world.shard.next_sequence -= 1
    assert invariants.calls_add_up(world.shard) == (
        "a call of a producer points to ids that were never used"
    )


@pytest.fixture
def sent(world):
    """A message that waits for another shard."""
    message = PushJobs("q", JobOptions(), Payloads.of([b"1"]))
    decide_send(world.shard, world.now, 2, [message, message])
    world.commit()
    world.check()
    return next(iter(world.shard.messages.outbox(2)))


def test_messages_out_of_order_are_noticed(world, sent):
    world.shard.messages.outboxes[2].reverse()
    assert broken(world).startswith("G19: messages to shard 2 wait as [")


def test_a_message_that_is_not_found_by_its_key_is_noticed(world, sent):
    sent.to_shard = 3
    assert broken(world) == f"G19: message {sent.number} to shard 2 is not found by its key"


def test_a_message_in_no_outbox_is_noticed(world, sent):
    world.shard.messages.outboxes[2].popleft()
    assert broken(world) == "G19: 2 messages wait, 1 of them in an outbox"


def test_messages_that_are_not_counted_are_noticed(world, sent):
    world.shard.load.outgoing_bytes += 1
    assert broken(world) == "G19: load says (2, 3) jobs and bytes to other shards of (2, 2)"


def test_reports_that_nobody_holds_are_noticed(world, job):
    world.shard.report_bytes += 5
    assert broken(world) == "G19: 5 bytes of reports are counted, 0 held"


def test_slots_that_are_not_counted_are_noticed(world, job):
    job.holder.in_flight.extra_slots = -1
    problem = invariants.in_flight_covers_leases(world.shard)
    assert problem == f"session {job.holder.session_id} does not count 0 slots that it holds"
