"""The promise file: what it remembers, and what tearing does to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobline_server.storage.recovery_cases import CommitMark, Unreadable
from jobline_server.storage.sqlite.watermark import WatermarkFile

HEADER_BYTES = 64
SLOT_BYTES = 64


@pytest.fixture
def promises(tmp_path: Path) -> Iterator[WatermarkFile]:
    made = WatermarkFile(tmp_path / "promise", 3)
    yield made
    made.close()


def reopened(promises: WatermarkFile, file: Path, shards: int = 3) -> WatermarkFile:
    promises.close()
    return WatermarkFile(file, shards)


def test_new_file_promises_nothing(promises: WatermarkFile) -> None:
    assert [promises.read(shard) for shard in range(3)] == [None, None, None]


def test_last_promise_counts(promises: WatermarkFile, tmp_path: Path) -> None:
    for offset in range(1, 6):
        promises.keep(1, 7, offset, offset * 11, 1_000)
    wanted = CommitMark(epoch=7, offset=5, chain=55, id_ceiling=1_000)
    assert promises.read(1) == wanted
    assert (promises.read(0), promises.read(2)) == (None, None)
    again = reopened(promises, tmp_path / "promise")
    assert again.read(1) == wanted
    again.close()


def test_new_epoch_counts_at_the_same_offset(promises: WatermarkFile) -> None:
    promises.keep(0, 7, 5, 1, 1)
    promises.keep(0, 8, 5, 1, 2)
    assert promises.read(0) == CommitMark(epoch=8, offset=5, chain=1, id_ceiling=2)


def test_largest_numbers_fit(promises: WatermarkFile) -> None:
    largest = CommitMark(epoch=2**33, offset=2**48 - 1, chain=2**32 - 1, id_ceiling=2**43)
    promises.keep(2, largest.epoch, largest.offset, largest.chain, largest.id_ceiling)
    assert promises.read(2) == largest


def test_torn_promise_leaves_the_one_before(promises: WatermarkFile, tmp_path: Path) -> None:
    """A write that ends anywhere within its slot."""
    file = tmp_path / "promise"
    promises.keep(0, 1, 4, 44, 9)
    promises.keep(0, 1, 5, 55, 9)
    promises.close()
    before = file.read_bytes()
    written = WatermarkFile(file, 3)
    written.keep(0, 1, 6, 66, 9)
    written.close()
    after = file.read_bytes()
    offsets = set()
    for cut in range(HEADER_BYTES, HEADER_BYTES + SLOT_BYTES + 1):
        file.write_bytes(after[:cut] + before[cut:])
        torn = WatermarkFile(file, 3)
        promise = torn.read(0)
        torn.close()
        assert isinstance(promise, CommitMark)
        offsets.add(promise.offset)
    assert offsets == {5, 6}, "4 was overwritten by 6; between them stands 5"


def test_two_bad_slots_are_unreadable(promises: WatermarkFile, tmp_path: Path) -> None:
    file = tmp_path / "promise"
    promises.keep(0, 1, 4, 44, 9)
    promises.keep(0, 1, 5, 55, 9)
    promises.close()
    content = bytearray(file.read_bytes())
    content[HEADER_BYTES] ^= 1
    content[HEADER_BYTES + SLOT_BYTES] ^= 1
    file.write_bytes(content)
    bad = WatermarkFile(file, 3)
    assert bad.read(0) is Unreadable.UNREADABLE
    bad.renew(0)
    assert bad.read(0) is None
    bad.close()


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 448, bytes(448)])
def test_foreign_file_is_unreadable_until_it_is_renewed(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "promise"
    file.write_bytes(content)
    promises = WatermarkFile(file, 3)
    assert promises.read(0) is Unreadable.UNREADABLE
    assert file.read_bytes() == content, "it is kept as it is"
    with pytest.raises(RuntimeError):
        promises.keep(0, 1, 1, 1, 1)
    promises.renew(0)
    promises.keep(0, 1, 1, 1, 1)
    assert promises.read(0) == CommitMark(epoch=1, offset=1, chain=1, id_ceiling=1)
    promises.close()


def test_file_of_another_number_of_shards_is_unreadable(
    promises: WatermarkFile, tmp_path: Path
) -> None:
    other = reopened(promises, tmp_path / "promise", shards=4)
    assert other.read(0) is Unreadable.UNREADABLE
    other.close()


def test_draft_of_a_start_that_was_cut_off_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "promise.new").write_bytes(b"half")
    promises = WatermarkFile(tmp_path / "promise", 3)
    assert promises.read(0) is None
    promises.close()
