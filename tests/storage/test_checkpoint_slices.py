"""Slices of a checkpoint: how much one takes, and how much is left for the last."""

from __future__ import annotations

import pytest

from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.storage.checkpoint import OUTRUN_MAX, Checkpoint
from jobline_server.storage.kinds.table import PARENTS_AN_ITEM
from jobline_server.storage.store import ItemKind
from tests.storage.checkpointing import (
    LARGE,
    lease,
    push_jobs,
    push_lot,
    push_waiting,
    put_back,
    work_off,
)
from tests.storage.recovery_world import World


@pytest.fixture
def world():
    return World()


def test_slice_stays_within_its_budget(world):
    push_jobs(world, 100, payload=LARGE)
    for _ in range(20):
        push_lot(world, [b"x"] * 1_000)
    checkpoint = Checkpoint(world.shard, world.segments)
    while piece := checkpoint.slice(20):
        jobs = sum(row.kind is ItemKind.JOB for row in piece.rows)
        lots = sum(row.kind is ItemKind.LOT for row in piece.rows)
        assert jobs + 10 * lots < 20 + 11


def test_slice_of_jobs_with_many_parents_stays_within_its_budget(world):
    """The last one, too: a thousand that wait for a thousand others each took a step of 80 ms."""
    parents = tuple(push_jobs(world, 200))
    world.finish_checkpoint(truncate=True)
    push_waiting(world, 30, parents)
    # Those that it has, and those that it still waits for.
    each = 1 + 2 * len(parents) // PARENTS_AN_ITEM
    checkpoint = Checkpoint(world.shard, world.segments)
    pieces = []
    while piece := checkpoint.slice(40):
        pieces.append(sum(row.kind is ItemKind.JOB for row in piece.rows))
    assert max(pieces) <= 40 // each + 1
    assert sum(pieces) >= 30 - 40 // each


def test_large_jobs_are_not_left_for_the_last_slice(world):
    """They are few, but to write them takes as long as many."""
    push_jobs(world, 10, payload=LARGE * 100)
    checkpoint = Checkpoint(world.shard, world.segments)
    assert checkpoint.slice(20)


def test_slice_of_bundles_stays_within_its_budget(world):
    """Of new ones, and of those that jobs have left."""
    ids = push_jobs(world, 10_000)
    for left in (ids[:0], ids[::50]):
        decide_cancel(world.shard, world.now, left)
        checkpoint = world.checkpoint = Checkpoint(world.shard, world.segments)
        while piece := checkpoint.slice(100):
            keys = [row.key for row in piece.rows if row.kind is ItemKind.BUNDLE]
            assert sum(world.shard.bundles[key].jobs for key in keys) <= (100 + 13) * 5
        world.finish_checkpoint(truncate=True)


def test_removals_are_handed_out_in_slices_too(world):
    push_jobs(world, 1_000, payload=LARGE)
    world.finish_checkpoint(truncate=True)
    work_off(world, 1_000)
    checkpoint = Checkpoint(world.shard, world.segments)
    assert len(checkpoint.slice(20).removals) <= 20 * 16
    assert checkpoint.slice(20).removals


def test_slice_whose_budget_is_all_but_spent_takes_few_keys(world):
    push_jobs(world, 15, payload=LARGE)
    world.finish_checkpoint(truncate=True)
    work_off(world, 15)
    for number in range(19):
        push_jobs(world, key=f"k{number}")
    lease(world, 19)
    checkpoint = Checkpoint(world.shard, world.segments)
    assert len(checkpoint.slice(20).removals) == 15
    assert sum(map(len, world.shard.keys.unsaved.values())) == 19 - 1


def test_slice_is_empty_only_when_little_is_left(world):
    """Not when all that it looked at was put back and needs no removal."""
    ids = push_jobs(world, 40, payload=LARGE)
    world.finish_checkpoint(truncate=True)
    decide_cancel(world.shard, world.now, ids)
    for job_id in ids:
        put_back(world, job_id)
    checkpoint = Checkpoint(world.shard, world.segments)
    while checkpoint.slice(2):
        pass
    assert len(world.shard.changes.jobs.to_write) <= 2


def test_shard_that_changes_faster_than_it_is_written_is_not_chased_for_ever(world):
    """It is written in ever larger slices, so that what is left for the last one is bounded."""
    push_jobs(world, 100, payload=LARGE)
    checkpoint = Checkpoint(world.shard, world.segments)
    sizes = []
    while piece := checkpoint.slice(10):
        push_jobs(world, 10, payload=LARGE)
        sizes.append(len(piece.rows))
        assert len(sizes) < 1_000
    assert len(sizes) > OUTRUN_MAX + 1
    world.commit()
    assert len(checkpoint.finish().rows) <= 2 * max(sizes)
