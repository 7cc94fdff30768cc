"""The index that finds the lot of any id."""

from __future__ import annotations

from random import Random

from jobline_server.engine import lots
from jobline_server.engine.lot import Lot
from jobline_server.engine.lots import LotIndex
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import DEFAULT_OPTIONS


def lot_of(*payloads: bytes, first_id: int) -> Lot:
    return Lot(
        first_id, Queue("q", 1, 0), DEFAULT_OPTIONS, Payloads.of(payloads), pushed_ms=0, run_at_ms=0
    )


def indexed(*added: Lot) -> LotIndex:
    index = LotIndex()
    for lot in added:
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
    many = [lot_of(b"x", first_id=i) for i in range(200)]
    index = indexed(*many)
    for lot in many[:150]:
        index.remove(lot)
    assert sum(len(chunk.ids) for chunk in index._chunks) < 150
    assert [index.find(i) for i in range(200)] == [None] * 150 + many[150:]


def test_index_of_many_lots_is_right_whatever_comes_and_goes(monkeypatch):
    """Trial E5: it stands in short lists, none of which is empty, so that no step walks over all
    lots.
    """
    monkeypatch.setattr(lots, "CHUNK_LOTS", 4)
    chance, index, there = Random(7), LotIndex(), {}
    for first_id in [*range(0, 400, 2), *chance.sample(range(1, 400, 2), 100)]:
        there[first_id] = lot_of(b"x", first_id=first_id)
        index.add(there[first_id])
        if chance.random() < 0.6:
            index.remove(there.pop(chance.choice(list(there))))
        assert all(0 < chunk.alive <= len(chunk.ids) for chunk in index._chunks)
    assert [index.find(i) for i in range(400)] == [there.get(i) for i in range(400)]
