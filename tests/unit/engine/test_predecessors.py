"""Mistakes that other queues made with the state of a job, each by the name of the mistake. Those
that other tests show by the way say so in their docstrings, and `docs/guarantees.md` lists all.
"""

from __future__ import annotations

import pytest

from jobline_server.engine.decide.queues import decide_delete_idle_queues, decide_pause_queue
from jobline_server.engine.values import DEFAULT_OPTIONS, JobState, LeaseReason, PushOutcome
from tests.pushed_rows import NewJob

LEASE_MS = 30_000
YEAR_MS = 365 * 24 * 3_600_000


@pytest.mark.parametrize("key", ["cron:daily", "repeat:1", "_system", "dead:x", "\u0000"])
def test_key_that_looks_like_the_systems_own_is_as_good_as_any(world, key):
    """Predecessors: a user's key that begins with `cron:` made a stalled job vanish. Here no key
    has a meaning: the job goes out again, and its key still stands for it.
    """
    job_id = world.row(key=key)
    world.lease()
    world.tick(LEASE_MS + 1_000)
    assert world.state(job_id) is JobState.READY
    again = world.one()
    assert (again.id, again.reason) == (job_id, LeaseReason.STALLED)
    repeated = world.push(jobs=[NewJob(b"x", DEFAULT_OPTIONS, key)])
    assert repeated.exceptions == [(0, PushOutcome.DUPLICATE, job_id)]
    assert world.ack([(job_id, again.delivery)]) == []
    assert list(world.ended()) == [job_id]


def test_job_that_is_held_back_is_never_deleted(world):
    """Predecessors: a job that was blocked for an hour was deleted in silence. Here a
    job stays, however long a pause or a delay holds it back.
    """
    waiting, delayed = world.row(), world.row(delay_ms=2 * YEAR_MS)
    decide_pause_queue(world.shard, world.now, "q", "operator", "repairs")
    world.commit()
    for _ in range(4):
        world.tick(YEAR_MS // 4)
        decide_delete_idle_queues(world.shard, world.now)
    assert world.counts() == (1, 1, 0)
    assert (world.state(waiting), world.state(delayed)) == (JobState.READY, JobState.SCHEDULED)
    assert not world.ended()
