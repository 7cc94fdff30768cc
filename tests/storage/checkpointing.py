"""What happens to a shard between its checkpoints, in short words."""

from __future__ import annotations

from jobline_server.engine.commands import Push
from jobline_server.engine.decide.ack import decide_ack
from jobline_server.engine.decide.admin import decide_retry
from jobline_server.engine.decide.lease import decide_lease
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.holder import Holder
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, JobOptions
from jobline_server.storage.kinds.bundles import JOB_BYTES_MAX
from tests.pushed_rows import NewJob, rows_of
from tests.shard_image import image_of
from tests.storage.recovery_world import SHARD

# A job that is too large to be bundled with its neighbours.
LARGE = bytes(JOB_BYTES_MAX + 1)
# By job key.
PAYLOADS = {"": b"x", "k1": b"k1", "k2": LARGE}


def push_jobs(world, count=1, *, key="", level=None, payload=b"x"):
    """Single jobs; returns their ids."""
    rows = rows_of([NewJob(payload, DEFAULT_OPTIONS, key)] * count)
    pushed = decide_push(world.shard, world.now, Push("q", DEFAULT_OPTIONS, rows, level=level))
    return list(range(pushed.first_id, pushed.first_id + pushed.count))


def push_waiting(world, count, parents):
    """Jobs that wait for all of these; returns their ids."""
    rows = rows_of([NewJob(b"x", DEFAULT_OPTIONS, ties=Ties(parents=parents))] * count)
    pushed = decide_push(world.shard, world.now, Push("q", DEFAULT_OPTIONS, rows))
    return list(range(pushed.first_id, pushed.first_id + pushed.count))


def push_lot(world, payloads, level=None):
    """A lot; returns the id of its first job."""
    push = Push("q", JobOptions(name="lot"), payloads=Payloads.of(payloads), level=level)
    return decide_push(world.shard, world.now, push).first_id


def lease(world, max_jobs):
    """Leases jobs from the front; returns (id, delivery) of each."""
    world.commit()
    leased = decide_lease(
        world.shard,
        world.now,
        world.shard.queues["q"],
        Holder("w", ""),
        max_jobs=max_jobs,
        max_bytes=10_000_000,
        names=None,
        lease_ms=0,
    )
    leases = [(job.id, job.delivery) for job in leased.jobs]
    for run in leased.runs:
        leases += [(run.first_id + index, run.delivery) for index in range(len(run.payloads))]
    return leases


def work_off(world, max_jobs):
    """Leases and acks jobs from the front."""
    leases = lease(world, max_jobs)
    ids = [job_id for job_id, _ in leases]
    decide_ack(world.shard, world.now, ids, [delivery for _, delivery in leases], {})


def put_back(world, job_id):
    """An ended job is retried by hand."""
    world.commit()
    world.write_buffer()
    state, record = world.kept()[job_id]
    decide_retry(world.shard, world.now, [(record, state)])


def stored(world, kind):
    return world.store.item_keys(SHARD, kind)


def check_recovery(world):
    """A new process finds the very same state, and nothing damaged."""
    world.commit()
    before = world.image
    world.crash(ops_kept=0)
    assert image_of(world.shard) == before
    assert not world.reports
