"""Keys: found within their window, forgotten in slices, never evicted before."""

from __future__ import annotations

from jobline_server.engine import limits
from jobline_server.engine.keys import (
    JOB_KEY,
    REQUEST_ID,
    KeyRecord,
    KeyTable,
    digest_of,
    hash_of,
)

HOUR, MINUTE = limits.KEY_BUCKET_MS, limits.MINUTE_MS
ONE, TWO = b"1" * 16, b"2" * 16


def record(expires_ms: int, first_id: int = 1) -> KeyRecord:
    return KeyRecord(first_id, 1, 0, expires_ms)


def test_kinds_and_queues_of_keys_never_meet():
    """Not even where a queue's name ends as another's key begins."""
    hashes = {
        hash_of(JOB_KEY, "q", b"k"),
        hash_of(REQUEST_ID, "q", b"k"),
        hash_of(JOB_KEY, "qk", b""),
        hash_of(JOB_KEY, "", b"qk"),
    }
    assert len(hashes) == 4
    assert all(len(one) == 16 for one in hashes)


def test_digest_tells_payloads_apart_and_fits_63_bits():
    assert digest_of(b"1") != digest_of(b"2")
    assert 0 <= digest_of(b"x") < 1 << 63


def test_key_is_found_till_its_window_ends_and_not_after():
    table = KeyTable()
    table.add(ONE, record(5_000))
    assert table.find(ONE, 4_999) == record(5_000)
    assert table.find(ONE, 5_000) is None
    assert table.find(TWO, 0) is None


def test_keys_are_forgotten_once_their_minute_has_ended():
    table = KeyTable()
    table.add(ONE, record(MINUTE + 1))
    table.add(TWO, record(2 * MINUTE + 1))
    assert not table.is_due(2 * MINUTE - 1)
    assert table.is_due(2 * MINUTE)
    assert table.forget(2 * MINUTE, 9) == 1
    assert set(table.records) == {TWO}
    assert table.forget(2 * MINUTE, 9) == 0
    assert table.forgotten_ms == 2 * MINUTE
    assert table.forget(9 * MINUTE, 9) == 1
    assert not table.is_due(99 * MINUTE)


def test_a_million_keys_are_forgotten_in_slices():
    """Trial C2: keys of one minute go as many at a time as a slice may cost."""
    table = KeyTable()
    for number in range(1_000):
        table.add(b"%16d" % number, record(MINUTE + number))
    assert [table.forget(2 * MINUTE, 300) for _ in range(5)] == [300, 300, 300, 100, 0]
    assert table.forgotten_ms == 2 * MINUTE


def test_key_taken_over_outlives_the_minute_of_its_first_window():
    """Its first window ended, and somebody used it again before it was swept."""
    table = KeyTable()
    assert table.add(ONE, record(MINUTE + 1, first_id=1)) == 1
    assert table.add(ONE, record(5 * MINUTE, first_id=2)) == 0
    assert table.forget(3 * MINUTE, 9) == 0
    found = table.find(ONE, 4 * MINUTE)
    assert found is not None
    assert found.first_id == 2


def test_key_is_unsaved_till_a_checkpoint_takes_it():
    """What was read from a checkpoint need not be written again."""
    table = KeyTable()
    table.add(ONE, record(1))
    table.add(TWO, record(2), saved=True)
    assert table.unsaved == {0: [ONE]}
    table.forget(9 * HOUR, 9)
    assert table.unsaved == {}


def test_volatile_key_is_never_saved_until_a_durable_one_takes_it_over():
    table = KeyTable()
    table.add(ONE, record(1), volatile=True)
    assert (table.unsaved, set(table.volatile)) == ({}, {ONE})
    table.add(ONE, record(2))
    assert (table.unsaved, set(table.volatile)) == ({0: [ONE]}, set())
    table.add(TWO, record(3), volatile=True)
    table.forget(9 * HOUR, 9)
    assert set(table.volatile) == set()


def test_durable_keys_of_an_hour_are_written_once_each():
    """Not those that are in no journal, were replaced by others, or are not there any more."""
    table = KeyTable()
    table.add(ONE, record(HOUR + 5))
    table.add(TWO, record(HOUR + 5), volatile=True)
    assert table.written(1, [ONE, TWO, ONE, b"3" * 16]) == [(ONE, record(HOUR + 5))]
    table.add(ONE, record(2 * HOUR, first_id=2))
    assert table.written(1, [ONE]) == []
    assert table.written(2, [ONE]) == [(ONE, record(2 * HOUR, first_id=2))]
