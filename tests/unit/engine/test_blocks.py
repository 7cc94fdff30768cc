"""Blocks: how many items a queue has in each neighbourhood of ids."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from jobline_server.engine.blocks import BLOCK_IDS, IdBlocks
from jobline_server.engine.items import items_from
from jobline_server.engine.lot import Lot
from jobline_server.engine.tables import are_neighbours


@pytest.mark.parametrize("seed", range(5))
def test_items_are_counted_in_and_out_in_any_order(seed):
    """Trial C4: neighbours, one alone, and ids far apart or out of order."""
    chance, blocks = Random(seed), IdBlocks()
    there: set[int] = set()
    for _ in range(200):
        first_id, count = chance.randrange(10_000), chance.choice([1, 2, 70, 300])
        run = range(first_id, first_id + count)
        if there.isdisjoint(run):
            blocks.add(list(run), neighbours=True)
            there |= set(run)
        leaving = [one for one in run if one in there]
        if chance.random() < 0.5:
            chance.shuffle(leaving)
        leaving = leaving[: chance.randrange(len(leaving) + 1)]
        blocks.remove(leaving, neighbours=are_neighbours(leaving))
        there -= set(leaving)
        assert blocks.counts() == Counter(one // BLOCK_IDS for one in there)
    blocks.remove(list(there), neighbours=False)
    assert list(blocks) == []


def id_of(item):
    return item.first_id if isinstance(item, Lot) else item.id


def test_walk_meets_the_items_of_a_queue_by_id(world):
    """Trial C4: single jobs and lots, from the lot on that holds an id; not those of others."""
    lots = [world.plain(b"1", b"2", b"3", delay_ms=9).first_id for _ in range(3)]
    single = world.row()
    world.plain(b"1", queue="other")
    world.row(queue="other")
    queue = world.shard.queues["q"]

    def walked(first_id, step_ids=BLOCK_IDS):
        found = items_from(world.shard, queue, first_id, step_ids)
        return [id_of(item) for items in found for item in items]

    assert walked(0) == walked(0, 1) == [*lots, single]
    assert walked(lots[1] + 2) == [*lots[1:], single]
    assert walked(single + 1) == []
