"""The image of a shard: what is durable of it, and nothing else."""

from __future__ import annotations

from jobline_server.engine.commands import ExtendItem
from jobline_server.engine.values import AckLevel, JobOptions
from tests.shard_image import image_of


def busy(world):
    """A bit of everything."""
    world.plain(b"1", b"2", b"3", options=JobOptions(priority=2))
    world.plain(b"4", delay_ms=60_000)
    world.row(key="k", priority=1)
    leased = world.lease(4, holder=world.session())
    run = leased.runs[0]
    world.ack([(run.first_id, run.delivery)])
    world.fail(run.first_id + 1, run.delivery)
    world.extend(ExtendItem(leased.jobs[0].id, leased.jobs[0].delivery, worker_checkpoint=b"c"))
    return world


def test_recovered_shard_has_the_same_image(world):
    busy(world)
    assert image_of(world.recovered()) == image_of(world.shard)


def test_image_tells_shards_apart_that_differ_in_one_thing(world):
    before = image_of(busy(world).shard)
    job = next(iter(world.shard.jobs.values()))
    job.attempts += 1
    assert image_of(world.shard) != before


def test_what_is_never_written_is_not_in_the_image(world):
    before = image_of(busy(world).shard)
    world.plain(b"5", level=AckLevel.MEMORY)
    world.row(key="v", level=AckLevel.MEMORY)
    after = image_of(world.shard)
    assert {**after, "queues": None} == {**before, "queues": None}


def test_place_of_the_cursor_among_members_that_are_gone_does_not_matter(world):
    """A lane moves it when it comes there, which is no fact."""
    world.plain(b"1", b"2")
    [lot] = world.shard.lots.lots.values()
    lot.remove(0)
    before = image_of(world.shard)
    lot.reach_ready()
    assert image_of(world.shard) == before
