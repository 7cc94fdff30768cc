"""The index that finds the lot of any id."""

from __future__ import annotations

from jobline_server.engine.lot import Lot
from jobline_server.engine.lots import LotIndex
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import DEFAULT_OPTIONS


def lot_of(*payloads: bytes, first_id: int) -> Lot:
    return Lot(
        first_id, Queue("q", 1, 0), DEFAULT_OPTIONS, Payloads.of(payloads), pushed_ms=0, run_at_ms=0
    )


def indexed(*lots: Lot) -> LotIndex:
    index = LotIndex()
    for lot in lots:
        index.add(lot)
    return index


def test_lot_is_found_by_any_of_its_ids_and_no_other():
    one, two = lot_of(b"x", b"x", first_id=10), lot_of(b"x", first_id=20)
    index = indexed(two, one)
    found = [index.find(job_id) for job_id in (9, 10, 11, 12, 19, 20, 21)]
    assert found == [None, one, one, None, None, two, None]


def test_lot_that_was_removed_is_not_found():
    """Nor remembered from the last time somebody asked."""
    one = lot_of(b"x", b"x", first_id=10)
    index = indexed(one)
    assert index.find(11) is one
    index.remove(one)
    assert index.find(11) is None


def test_index_forgets_the_places_of_lots_that_went():
    lots = [lot_of(b"x", first_id=i) for i in range(200)]
    index = indexed(*lots)
    for lot in lots[:150]:
        index.remove(lot)
    assert len(index._ids) < 150
    assert [i for i in index.first_ids(0, 200) if i in index.lots] == list(range(150, 200))
    assert index.first_ids(180, 5) == list(range(180, 185))
