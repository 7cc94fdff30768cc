"""Settling leases: fail, release and extend, with leases that hold and leases that do not."""

from __future__ import annotations

from jobline_server.engine.commands import ReleaseItem
from jobline_server.engine.values import AckLevel, SettleOutcome

LOST, NOT_FOUND = SettleOutcome.LEASE_LOST, SettleOutcome.NOT_FOUND


def test_release_of_a_job_twice_in_one_call_gives_it_back_once(world):
    """The second one meets a job that is not leased any more, as it would in a call of its own."""
    job_id = world.row()
    job = world.one()
    item = ReleaseItem(job_id, job.delivery)
    assert world.release(item, item) == [(1, LOST)]
    assert world.release(item) == [(0, LOST)]


def test_wrong_delivery_of_an_ended_job_is_not_found_whether_its_run_is_open_or_not(world):
    """What a lease that is still open covered has ended all the same."""
    first_id = world.plain(b"1", b"2").first_id
    delivery = world.lease().runs[0].delivery
    assert not world.ack([(first_id, delivery)])
    assert world.ack([(first_id, delivery + 1)]) == [(0, NOT_FOUND)]
    assert world.release(ReleaseItem(first_id, delivery + 1)) == [(0, NOT_FOUND)]


def test_released_jobs_stand_at_the_front_in_the_order_of_the_list(world):
    """Also where some of them are never written, and are told of in facts of their own."""
    ids = [world.row(), world.row(level=AckLevel.MEMORY), world.row(), world.row()]
    leased = world.lease(3).jobs
    world.release(*[ReleaseItem(job.id, job.delivery) for job in leased])
    assert world.ids() == ids
