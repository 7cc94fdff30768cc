"""What is kept beside payloads counts towards the bytes of the server: checkpoints of workers, the
errors of attempts, callbacks of batches.
"""

from __future__ import annotations

import pytest

from jobline_server.engine import limits
from jobline_server.engine.batches import BatchSpec
from jobline_server.engine.commands import ExtendItem, RefusalKind, Refused
from jobline_server.engine.decide.admin import decide_retry
from jobline_server.engine.decide.batches import forget_batches
from jobline_server.engine.load import Load
from jobline_server.engine.reported import error_bytes
from jobline_server.engine.values import FailAction, JobError
from tests.unit.engine.batch_words import ALL, THEN, close, created, settled
from tests.unit.engine.world import ERROR, World

ERROR_BYTES = error_bytes(ERROR)


def counted(world: World) -> int:
    """What the shard counts, here and in one that is made from the journal."""
    world.commit()
    world.check()
    recovered = world.recovered()
    assert world.shard.load.report_bytes == world.shard.report_bytes == recovered.report_bytes
    return world.shard.report_bytes


def test_a_checkpoint_counts_as_long_as_its_job_lives(world):
    world.row(b"")
    job = world.one()
    for checkpoint in (b"half", b"more than half", b""):
        world.extend(ExtendItem(job.id, job.delivery, worker_checkpoint=checkpoint))
        assert counted(world) == len(checkpoint)
    world.extend(ExtendItem(job.id, job.delivery, worker_checkpoint=b"end"))
    world.ack([(job.id, job.delivery)])
    assert counted(world) == 0


def test_errors_of_the_last_attempts_count(world, monkeypatch):
    """Also those that come back with a retried job."""
    monkeypatch.setattr(limits, "HISTORY_MAX", 1)
    assert len("ValueError") + len("no such file") == ERROR_BYTES
    assert error_bytes(JobError("t", "mm", "sss", b"dddd")) == 10
    assert error_bytes(None) == 0
    job_id = world.row(b"")
    for _ in range(2):
        world.fail(job_id, world.one().delivery)
        world.tick(limits.DAY_MS)
        assert counted(world) == ERROR_BYTES
    world.fail(job_id, world.one().delivery, then=FailAction.DEAD)
    assert counted(world) == 0
    state, record = world.ended()[job_id]
    assert record.held_bytes() == ERROR_BYTES
    decide_retry(world.shard, world.now, [(record, state)])
    world.commit()
    assert counted(world) == ERROR_BYTES


def test_callbacks_count_until_their_batch_is_forgotten(world):
    """Their payloads are in memory until then."""
    batch = created(world)
    held = len(b"then" + b"always" + b"death")
    assert counted(world) == held
    created(world, BatchSpec(on_success=THEN))
    assert counted(world) == held + len(b"then")
    close(world, batch)
    settled(world)
    assert counted(world) == held + len(b"then")
    world.advance(limits.BATCH_KEPT_MS_DEFAULT + 1)
    forget_batches(world.shard, world.now)
    world.commit()
    assert counted(world) == len(b"then")


def test_a_batch_whose_callbacks_do_not_fit_is_refused():
    """One without any takes nothing."""
    world = World(Load(waiting_bytes_max=20))
    world.plain(b"12345678")
    with pytest.raises(Refused, match="holds 8 of 20 payload bytes; callbacks have 15") as refused:
        created(world, ALL)
    assert refused.value.kind is RefusalKind.SERVER_FULL
    created(world, BatchSpec(on_success=THEN, on_complete=THEN, on_first_death=THEN))
    created(world, BatchSpec())
    with pytest.raises(Refused, match="the server holds 20 of 20"):
        world.plain(b"1")
    world.check()
