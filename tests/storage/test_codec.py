"""The codec: every fact comes back from its bytes as it was."""

from __future__ import annotations

from collections import deque
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobline.v1 import entry_pb2
from jobline_server.engine import entries, limits
from jobline_server.engine.entry_bytes import BYTES_OF, size_of
from jobline_server.engine.job_log import JobLog, LogLine
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.records import JobRecord
from jobline_server.engine.report_entries import JobLogged
from jobline_server.engine.unique_entries import UniqueKeysExtended
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    Attempt,
    AttemptOutcome,
    EndReason,
    JobError,
    JobOptions,
    JobState,
    LogLevel,
)
from jobline_server.storage.codec import UnknownFact, batch_parts, decode_batch, encode_batch
from jobline_server.storage.codec import batch as batch_module
from tests.storage.strategies import FACTS, facts

KINDS = get_args(entries.Fact)
# Of any: its kind and its numbers.
FACT_BYTES = 300


def test_every_fact_has_a_strategy():
    """A fact that was added to the engine must be tested here."""
    assert set(FACTS) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_fact_comes_back_equal(kind):
    """Each fact is read back with every field as it was written."""

    @given(FACTS[kind])
    def comes_back(fact):
        assert decode_batch(encode_batch([fact])) == [fact]

    comes_back()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_fact_takes_more_bytes_than_are_counted(kind):
    """A row that is larger than SQLite takes would stop the server."""
    bytes_of = BYTES_OF.get(kind, size_of)
    if bytes_of is None:
        return

    @settings(max_examples=40)
    @given(FACTS[kind])
    def takes_no_more(fact):
        assert len(encode_batch([fact])) <= bytes_of(fact) + FACT_BYTES

    takes_no_more()


def test_what_makes_a_fact_large_is_counted():
    """And not more than a few times over."""
    wide, narrow = "\N{GRINNING FACE}", "x"
    headers = [JobOptions(headers=(("h", f"{n:4}" + narrow * 8_000),)) for n in range(100)]
    line = LogLine(1, LogLevel.INFO, wide * 4_000, 1)
    error = JobError("t", wide * 1_024, wide * 4_096, b"d" * 16_384)
    attempt = Attempt(1, 1, "w", 1, 2, AttemptOutcome.FAILED, error)
    record = JobRecord(1, "q", headers[0], b"p" * 9_999, 1, log=JobLog(deque([line] * 60)))
    record.history, record.error = (attempt,) * 20, error
    with_keys = entries.JobsPushed(1, "q", 1, [DEFAULT_OPTIONS] * 100, [b"x"] * 100)
    with_keys.job_keys, with_keys.digests = [wide * 64] * 100, [1] * 100
    many: list[entries.Fact] = [
        entries.JobsPushed(1, "q", 1, headers, [b""] * 100),
        with_keys,
        entries.JobsRetried(1, [record], [JobState.DEAD]),
        entries.JobsCompleted(1, [1, 2], [1, 1], [1, 2], [b"r" * 9_999] * 2),
        JobLogged(1, "q", 1, [line] * 60, 1 << 20),
        entries.JobDied(1, 1, EndReason.EXPIRED, error),
    ]
    for fact in many:
        taken = len(encode_batch([fact]))
        bytes_of = BYTES_OF.get(type(fact), size_of)
        assert bytes_of is not None
        assert taken <= bytes_of(fact) <= 5 * taken, fact


@given(st.lists(facts, max_size=5))
def test_facts_of_a_batch_keep_their_order(batch):
    """A journal row holds its facts in the order in which they happened."""
    assert decode_batch(encode_batch(batch)) == batch


@given(st.lists(st.one_of(FACTS[entries.LotPushed], facts), max_size=5))
def test_a_large_lot_is_written_without_a_copy_of_its_payloads(batch):
    """Its block is a part of the row as it is; whoever reads the row sees no difference."""
    whole = entry_pb2.JournalBatch.FromString(encode_batch(batch))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_module, "COPIED_BYTES_MAX", -1)
        parts = batch_parts(batch)
    assert entry_pb2.JournalBatch.FromString(b"".join(parts)) == whole
    blocks = [fact.payloads.block for fact in batch if isinstance(fact, entries.LotPushed)]
    assert all(any(part is block for part in parts) for block in blocks)


def test_what_spares_apply_a_look_up_is_not_written():
    """A holder is a live object: the recovered fact does without."""
    fact = entries.JobsLeased(1, "q", "w", "s", 0, [7], [1], [9])
    bare = encode_batch([fact])
    fact.holder = object()  # type: ignore[assignment]
    assert encode_batch([fact]) == bare


def test_same_options_are_one_object_again():
    """The engine compares options by identity, so decoding interns them."""
    facts = [
        entries.LotPushed(
            1, "q", first_id, JobOptions(name="mail", priority=3), Payloads.of([b"x"])
        )
        for first_id in (1, 2)
    ]
    one, other = decode_batch(encode_batch([facts[0]])) + decode_batch(encode_batch([facts[1]]))
    assert isinstance(one, entries.LotPushed)
    assert isinstance(other, entries.LotPushed)
    assert one.options is other.options


def test_default_options_are_the_default_object():
    """No options at all are `DEFAULT_OPTIONS` itself."""
    pushed = entries.LotPushed(1, "q", 1, DEFAULT_OPTIONS, Payloads.of([b""]))
    (fact,) = decode_batch(encode_batch([pushed]))
    assert isinstance(fact, entries.LotPushed)
    assert fact.options is DEFAULT_OPTIONS


def test_distinct_options_are_written_once():
    """A thousand jobs of two kinds carry two options and a thousand small numbers."""
    kinds = [JobOptions(name="a" * 100), JobOptions(name="b" * 100)]
    fact = entries.JobsPushed(1, "q", 1, kinds * 500, [b""] * 1_000)
    message = entry_pb2.JournalBatch.FromString(encode_batch([fact])).entries[0].jobs_pushed
    assert len(message.options) == 2
    assert list(message.option_indexes[:4]) == [0, 1, 0, 1]


def test_fact_of_a_newer_version_is_refused():
    """What is not understood must not be skipped: later facts build on it."""
    batch = entry_pb2.JournalBatch(entries=[entry_pb2.Entry(at_ms=1)])
    with pytest.raises(UnknownFact):
        decode_batch(batch.SerializeToString())


def test_a_key_that_an_earlier_version_extended_is_read_as_one_of_many() -> None:
    batch = entry_pb2.JournalBatch()
    message = batch.entries.add(at_ms=5).unique_key_extended
    message.queue, message.unique_key = "mail", "a"
    message.id, message.until_ms, message.aged_ms = 7, 9, 3
    assert decode_batch(batch.SerializeToString()) == [
        UniqueKeysExtended(5, "mail", ["a"], [7], [9], 3)
    ]


def test_stale_jobs_of_earlier_versions_are_deleted_after_an_hour():
    """They wrote no time, as there was one for all; nor does this one where it is that."""
    aged = entries.JobsAgedOut(9, "q", JobState.DEAD, [7], [1], limits.DELETE_AFTER_MS_DEFAULT)
    batch = entry_pb2.JournalBatch.FromString(encode_batch([aged]))
    assert not batch.entries[0].jobs_staled.HasField("delete_after_ms")
    assert decode_batch(encode_batch([aged])) == [aged]
