"""Keys: found within their window, forgotten by the hour, never evicted before."""

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

HOUR = limits.KEY_BUCKET_MS
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


def test_keys_are_forgotten_a_bucket_at_a_time_and_counted():
    table = KeyTable()
    table.add(ONE, record(HOUR + 1))
    table.add(TWO, record(2 * HOUR + 1))
    assert table.next_expiry_ms() == 2 * HOUR
    assert table.expire(2 * HOUR) == 1
    assert set(table.records) == {TWO}
    assert table.expire(2 * HOUR) == 0
    assert table.expire(9 * HOUR) == 1
    assert table.next_expiry_ms() is None


def test_key_taken_over_outlives_the_bucket_of_its_first_window():
    """Its first window ended, and somebody used it again before the bucket went."""
    table = KeyTable()
    table.add(ONE, record(HOUR + 1, first_id=1))
    table.add(ONE, record(5 * HOUR, first_id=2))
    assert table.expire(3 * HOUR) == 0
    found = table.find(ONE, 4 * HOUR)
    assert found is not None
    assert found.first_id == 2


def test_key_is_unsaved_till_a_checkpoint_takes_it():
    """What was read from a checkpoint need not be written again."""
    table = KeyTable()
    table.add(ONE, record(1))
    table.add(TWO, record(2), saved=True)
    assert table.unsaved == {0: [ONE]}
    table.expire(9 * HOUR)
    assert table.unsaved == {}


def test_volatile_key_is_never_saved_until_a_durable_one_takes_it_over():
    table = KeyTable()
    table.add(ONE, record(1), volatile=True)
    assert (table.unsaved, table.volatile) == ({}, {ONE})
    table.add(ONE, record(2))
    assert (table.unsaved, table.volatile) == ({0: [ONE]}, set())
    table.add(TWO, record(3), volatile=True)
    table.expire(9 * HOUR)
    assert table.volatile == set()
