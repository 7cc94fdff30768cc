"""Short words for tests of batches."""

from __future__ import annotations

from dataclasses import replace

from jobline_server.engine import limits
from jobline_server.engine.batches import (
    Batch,
    BatchCount,
    BatchSpec,
    Callback,
    MemberEnd,
)
from jobline_server.engine.decide.batches import (
    decide_close_batch,
    decide_create_batch,
    settle_batches,
)
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.values import DEFAULT_OPTIONS

THEN = Callback("then", 1, DEFAULT_OPTIONS, b"then")
ALWAYS = Callback("always", 1, DEFAULT_OPTIONS, b"always")
DEATH = Callback("death", 1, DEFAULT_OPTIONS, b"death")
ALL = BatchSpec("import", on_success=THEN, on_complete=ALWAYS, on_first_death=DEATH)
ELSEWHERE = 3 << limits.SEQUENCE_BITS | 7
ONE_DONE = BatchCount((1, 0, 0, 0, 0))


def created(world, spec: BatchSpec = ALL) -> Batch:
    """A new batch of the world's shard."""
    return decide_create_batch(world.shard, world.now, spec)


def member(batch: Batch | int):
    """Options of its members."""
    batch_id = batch if isinstance(batch, int) else batch.id
    return replace(DEFAULT_OPTIONS, rules=replace(NO_RULES, batch_id=batch_id))


def settled(world) -> list[str]:
    """The queues to which callbacks were pushed by now, in order."""
    settle_batches(world.shard, world.now, 100)
    facts = world.commit()
    return [fact.queue for fact in facts if type(fact).__name__ in {"LotPushed", "JobsPushed"}]


def ends(batch: Batch) -> dict[str, int]:
    counts = zip(MemberEnd, batch.ends.by_end, strict=True)
    return {end.name: count for end, count in counts if count}


def close(world, batch: Batch) -> None:
    decide_close_batch(world.shard, world.now, batch.id)


def ack_all(world, queue: str = "q") -> None:
    leased = world.lease(queue=queue)
    world.ack([(job.id, job.delivery) for job in leased.jobs])
    for run in leased.runs:
        world.ack([(run.first_id + at, run.delivery) for at in range(run.count())])
