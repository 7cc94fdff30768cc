"""Payloads of large lots: an item of their own, which is not written again while hand-outs move the
cursor and the leases of their lot.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline_server.engine import invariants
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.lot import Lot
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import DEFAULT_OPTIONS
from jobline_server.storage.kinds.lot_payloads import decode_payloads, encode_payloads
from jobline_server.storage.kinds.lots import APART_BYTES_MIN
from jobline_server.storage.store import ItemKind
from tests.storage.checkpointing import check_recovery, lease, push_lot, stored, work_off
from tests.storage.recovery_world import SHARD, World

JOBS = 64
PAYLOAD = bytes(APART_BYTES_MIN // 16)


@pytest.fixture
def world():
    return World()


@pytest.fixture
def lot(world):
    """Pushes a large lot, four times as large as is needed for that; returns its first id."""
    return push_lot(world, [PAYLOAD] * JOBS)


def items(world):
    return stored(world, ItemKind.LOT), stored(world, ItemKind.LOT_PAYLOADS)


def bytes_of(world, kind, first_id):
    return len(world.store.blob_of(SHARD, kind, first_id))


def checkpoint(world):
    """Takes one; returns how many items it wrote beside the shard's counters."""
    before = world.store.rows_written
    world.finish_checkpoint(truncate=True)
    return world.store.rows_written - before - 1


@given(st.lists(st.binary(max_size=8), min_size=1, max_size=6), st.data())
def test_payloads_come_back(payloads, data):
    packed = Payloads.of(payloads)
    lot = Lot(7, Queue("q", 1, 5), DEFAULT_OPTIONS, packed, pushed_ms=1, run_at_ms=0)
    lot.apart = data.draw(st.integers(0, len(payloads)))
    again = decode_payloads(encode_payloads(lot))
    assert (again.skipped, len(again)) == (lot.apart, len(payloads))
    kept = range(lot.apart, len(payloads))
    assert [again[index] for index in kept] == payloads[lot.apart :]


def test_small_lot_is_one_item(world):
    first_id = push_lot(world, [b"x"] * JOBS)
    world.finish_checkpoint(truncate=True)
    assert items(world) == ([first_id], [])


def test_hand_outs_do_not_write_payloads_again(world, lot):
    world.finish_checkpoint(truncate=True)
    assert items(world) == ([lot], [lot])
    for _ in range(3):
        work_off(world, 5)
        lease(world, 5)
        assert checkpoint(world) == 1
        assert bytes_of(world, ItemKind.LOT, lot) < 1_000
        check_recovery(world)


def test_payloads_are_written_again_when_half_of_them_are_over(world, lot):
    """What is kept is no more than twice what is needed, and a payload is written twice at most."""
    world.finish_checkpoint(truncate=True)
    whole = bytes_of(world, ItemKind.LOT_PAYLOADS, lot)
    work_off(world, JOBS // 2)
    assert checkpoint(world) == 1
    work_off(world, 1)
    assert checkpoint(world) == 2
    assert bytes_of(world, ItemKind.LOT_PAYLOADS, lot) < whole / 2
    check_recovery(world)


def test_lot_that_became_small_is_one_item(world, lot):
    world.finish_checkpoint(truncate=True)
    check_recovery(world)
    work_off(world, JOBS - 3)
    world.finish_checkpoint(truncate=True)
    assert items(world) == ([lot], [])
    check_recovery(world)


def test_lot_that_ended_takes_its_payloads_along(world, lot):
    world.finish_checkpoint(truncate=True)
    check_recovery(world)
    decide_cancel(world.shard, world.now, list(range(lot, lot + JOBS)))
    world.finish_checkpoint(truncate=True)
    assert items(world) == ([], [])
    check_recovery(world)


def test_lot_that_ends_after_its_slice_leaves_nothing_behind(world, lot):
    assert world.stage(1)
    decide_cancel(world.shard, world.now, list(range(lot, lot + JOBS)))
    world.finish_checkpoint(truncate=True)
    assert items(world) == ([], [])
    check_recovery(world)


@pytest.mark.parametrize(("over", "apart"), [(0, True), (JOBS // 2 + 1, True), (JOBS - 3, False)])
def test_abandoned_checkpoint_loses_no_payloads(world, lot, over, apart):
    while world.stage(1):
        pass
    world.abandon_checkpoint()
    work_off(world, over)
    while world.stage(1):
        pass
    world.abandon_checkpoint()
    world.finish_checkpoint(truncate=True)
    assert items(world) == ([lot], [lot] if apart else [])
    check_recovery(world)


def test_last_slice_writes_few_payloads(world):
    """Those that are due to be written again are no surprise at the end."""
    for _ in range(20):
        push_lot(world, [PAYLOAD] * JOBS)
    world.finish_checkpoint(truncate=True)
    cursor = JOBS // 2 + 1
    for lot in world.shard.lots.lots.values():
        decide_cancel(world.shard, world.now, list(range(lot.first_id, lot.first_id + cursor)))
        lot.reach_ready()
    slices = 0
    while world.stage(1_000):
        slices += 1
    assert slices > 1


def rot(world, kind, key):
    world.store.rotten.add((kind, key))
    world.commit()
    world.crash(ops_kept=0)
    world.store.rotten.clear()
    world.store.forget(SHARD, kind, key)
    invariants.check(world.shard)


def test_lot_whose_payloads_are_bad_is_set_apart(world, lot):
    """And stays so until a checkpoint has removed what is left of it."""
    other = push_lot(world, [PAYLOAD] * JOBS)
    world.finish_checkpoint(truncate=True)
    work_off(world, 1)
    rot(world, ItemKind.LOT_PAYLOADS, lot)
    said = [report.what for report in world.reports[:2]]
    assert said == [f"lot_payloads item {lot}", f"lot item {lot}"]
    assert list(world.shard.lots.lots) == [other]
    world.crash(ops_kept=0)
    assert list(world.shard.lots.lots) == [other]
    world.finish_checkpoint(truncate=True)
    assert items(world) == ([other], [other])
    world.reports.clear()
    check_recovery(world)


def test_payloads_of_a_bad_lot_go_with_the_next_checkpoint(world, lot):
    world.finish_checkpoint(truncate=True)
    rot(world, ItemKind.LOT, lot)
    assert not world.shard.lots.lots
    world.finish_checkpoint(truncate=True)
    assert items(world) == ([], [])
