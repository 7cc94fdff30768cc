"""Lots: what waits in them, what is leased of them, and how they are found."""

from __future__ import annotations

LARGE = b"x" * 10_000


def test_one_large_payload_does_not_count_for_its_neighbours(world):
    """A lot's bytes are those of its payloads, not of its largest one a thousand times."""
    world.plain(LARGE, *[b"x"] * 99)
    assert world.shard.load.payload_bytes == 10_099
    assert world.queue().payload_bytes == 10_099


def test_bytes_of_a_lot_go_as_its_jobs_go(world):
    """Leases, windows and the load count each payload as long as it is, till nothing is left."""
    first_id = world.plain(b"", LARGE, b"xx", b"xxx").first_id
    holder = world.session()
    leased = world.lease(3, holder=holder)
    assert holder.tally.payload_bytes == 10_002
    delivery = leased.runs[0].delivery
    assert not world.ack([(first_id + 1, delivery)])
    world.fail(first_id, delivery)
    assert (holder.tally.payload_bytes, world.shard.load.payload_bytes) == (2, 5)
    assert not world.ack([(first_id + 2, delivery)])
    world.check()
    assert (holder.tally.payload_bytes, world.shard.load.payload_bytes) == (0, 3)
