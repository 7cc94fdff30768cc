"""Recovery as a table: each numbered case has its test here, against files that are really so.

A store is written, closed, and its file changed as the case says; then it is opened. A refusal must
leave everything as it was, and losses that are accepted must go on with all that is good.
"""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobline_server.storage import recovery_cases
from jobline_server.storage.recovery_cases import CASES, Decision
from jobline_server.storage.sqlite.items import checkpoint_checksum_of
from jobline_server.storage.store import DataLoss, StoreRefused
from tests.storage import test_recovery_ended
from tests.storage.rows import blobs_of, items_of, opened
from tests.storage.written_place import ACCEPTED, ACCEPTING, BLOBS, TAIL, Place


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    made = Place(tmp_path)
    yield made
    await made.close()


async def check_refused_then_accepted(place: Place, case: int, kept: list[bytes]) -> None:
    """Opening refuses with the number of the case, twice the same; accepting keeps what is good,
    and from then on everything is as always."""
    for _ in range(2):
        with pytest.raises((DataLoss, StoreRefused), match=f"recovery case {case}, ") as refusal:
            await place.read()
        assert "--accept-loss" in str(refusal.value), "the way out is told"
        await place.close()
    ACCEPTED.clear()
    writer, blobs = await place.read(ACCEPTING)
    assert blobs == kept
    assert f"recovery case {case}, " in "".join(ACCEPTED), "nothing is given up in silence"
    await place._stores[-1].commit([writer.row(b"after")])
    await place.close()
    _, blobs = await place.read()
    assert blobs == [*kept, b"after"]
    assert await items_of(place._stores[-1]) == {(3, 1): b"job"}
    await place.close()


def apart(place: Place) -> list[tuple[object, ...]]:
    return place.ask("SELECT key, recovery_case, blob FROM set_apart ORDER BY number")


async def test_case_01_whole_journal_is_read(place: Place) -> None:
    await place.write()
    writer, blobs = await place.read()
    assert (writer.offset, blobs) == (5, TAIL)


async def test_case_02_nothing_to_replay(place: Place) -> None:
    store = place.store()
    await opened(store)
    await store.close()
    writer, blobs = await place.read()
    assert (writer.offset, blobs) == (0, [])


async def test_case_03_rows_behind_the_checkpoint_are_not_read(place: Place) -> None:
    await place.write(truncate=False)
    assert place.ask("SELECT count(*) FROM journal") == [(5,)]
    _, blobs = await place.read()
    assert blobs == TAIL


async def test_case_04_torn_tail_was_never_acknowledged(place: Place) -> None:
    """The fifth commit reached the WAL but for its last byte, and the promise is of the fourth.
    (Every other place where a WAL may be torn: test_sqlite_crash_images.py.)"""
    store = place.store()
    writer = await opened(store)
    for blob in BLOBS[:4]:
        await store.commit([writer.row(blob)])
    promise = (place.directory / "promise").read_bytes()
    await store.commit([writer.row(BLOBS[4])])
    image = {file.name: file.read_bytes() for file in place.directory.iterdir()}
    image["promise"], image["jobline.db-wal"] = promise, image["jobline.db-wal"][:-1]
    copy = Place(place.directory / "copy")
    copy.directory.mkdir()
    for name, content in image.items():
        (copy.directory / name).write_bytes(content)
    writer, blobs = await copy.read()
    await copy.close()
    assert (writer.offset, blobs) == (4, BLOBS[:4])


async def test_case_05_promised_but_missing_is_refused(place: Place) -> None:
    await place.write()
    place.change("DELETE FROM journal WHERE position = 5")
    place.change(
        "UPDATE shard SET offset = 4, chain = (SELECT chain FROM journal WHERE position = 4)"
    )
    await check_refused_then_accepted(place, 5, TAIL[:2])


async def test_case_05_an_epoch_that_was_promised_is_missing(place: Place) -> None:
    """Hand-outs of that epoch may be with workers; after the loss is accepted, a later one
    follows."""
    await place.write()
    place.change("UPDATE shard SET epoch = 0 WHERE shard = 0")
    with pytest.raises(StoreRefused, match="recovery case 5, "):
        await place.read()
    writer, _ = await place.read(ACCEPTING)
    assert writer.epoch == 2


async def test_case_05_ids_that_were_promised_are_not_given_again(place: Place) -> None:
    await place.write()
    place.change("UPDATE shard SET id_ceiling = 1 WHERE shard = 0")
    with pytest.raises(StoreRefused, match="recovery case 5, "):
        await place.read()
    store = place.store(ACCEPTING)
    await store.open(2)
    image = await store.open_shard(0, 0, 10)
    assert image.first_free_id_sequence == 1_001


async def test_case_06_another_journal_than_promised_is_refused(place: Place) -> None:
    await place.write()
    place.change("UPDATE journal SET chain = 7 WHERE position = 5")
    place.change("UPDATE shard SET chain = 7 WHERE shard = 0")
    await check_refused_then_accepted(place, 6, TAIL[:2])


async def test_case_07_unreadable_promise_is_refused(place: Place) -> None:
    await place.write()
    promise = place.directory / "promise"
    promise.write_bytes(promise.read_bytes()[:64] + b"\xff" * 256)
    await check_refused_then_accepted(place, 7, TAIL)


async def test_case_07_promise_of_something_else_is_refused(place: Place) -> None:
    await place.write()
    (place.directory / "promise").write_bytes(b"not a promise")
    await check_refused_then_accepted(place, 7, TAIL)


async def test_case_08_shard_that_nothing_was_promised_for_is_opened(place: Place) -> None:
    """A process that is killed while it makes the store leaves it so."""
    await place.write()
    place.forget_promise()
    writer, blobs = await place.read()
    assert (writer.offset, blobs) == (5, TAIL)
    assert (place.directory / "promise").exists(), "from now on there is one"


async def test_case_09_bad_checksum_is_refused(place: Place) -> None:
    await place.write()
    place.change("UPDATE journal SET blob = x'664f7572' WHERE position = 4")
    await check_refused_then_accepted(place, 9, TAIL[:1])
    assert apart(place) == [(4, 9, b"fOur"), (5, 9, b"five")]


async def test_case_10_broken_chain_is_refused(place: Place) -> None:
    await place.write()
    place.change("UPDATE journal SET chain_before = 1 WHERE position = 5")
    await check_refused_then_accepted(place, 10, TAIL[:2])


async def test_case_10_shard_row_that_ends_in_another_chain_is_refused(place: Place) -> None:
    await place.write()
    place.forget_promise()
    place.change("UPDATE shard SET chain = 1 WHERE shard = 0")
    await check_refused_then_accepted(place, 10, TAIL)


async def test_case_11_gap_is_refused(place: Place) -> None:
    await place.write()
    place.change("DELETE FROM journal WHERE position = 4")
    await check_refused_then_accepted(place, 11, TAIL[:1])


async def test_case_12_journal_ahead_of_the_checkpoint_is_refused(place: Place) -> None:
    await place.write()
    place.change("DELETE FROM journal WHERE position = 3")
    await check_refused_then_accepted(place, 12, [])


async def test_case_13_journal_short_of_the_shard_row_is_refused(place: Place) -> None:
    await place.write()
    place.change("DELETE FROM journal WHERE position = 5")
    await check_refused_then_accepted(place, 13, TAIL[:2])


async def test_case_14_row_beyond_the_shard_row_is_refused(place: Place) -> None:
    await place.write()
    place.forget_promise()
    place.change(
        "UPDATE shard SET offset = 4, chain = (SELECT chain FROM journal WHERE position = 4) "
        "WHERE shard = 0"
    )
    await check_refused_then_accepted(place, 14, TAIL[:2])


async def test_case_15_checkpoint_ahead_of_the_journal_is_refused(place: Place) -> None:
    await place.write()
    place.forget_promise()
    checksum = checkpoint_checksum_of(1, 9, 0)
    place.change(
        f"UPDATE shard SET checkpoint_offset = 9, checkpoint_chain = 0, "
        f"checkpoint_checksum = {checksum} WHERE shard = 0"
    )
    await check_refused_then_accepted(place, 15, [])


@pytest.mark.parametrize("epoch", [0, 99])
async def test_case_16_stray_epoch_is_refused(place: Place, epoch: int) -> None:
    await place.write()
    place.change(f"UPDATE journal SET epoch = {epoch} WHERE position = 4")
    await check_refused_then_accepted(place, 16, TAIL[:1])


@pytest.mark.parametrize("column", ["generation", "checkpoint_offset", "checkpoint_chain"])
async def test_case_17_unreadable_checkpoint_is_refused(place: Place, column: str) -> None:
    """A generation that is too low would hide items, and nobody would miss them."""
    await place.write()
    place.change(f"UPDATE shard SET {column} = {column} + 1 WHERE shard = 0")
    with pytest.raises(StoreRefused, match="recovery case 17, "):
        await place.read()
    place.change(f"UPDATE shard SET {column} = {column} - 1 WHERE shard = 0")
    place.change("UPDATE shard SET checkpoint_checksum = 1 WHERE shard = 0")
    await check_refused_then_accepted(place, 17, TAIL)


async def test_case_22_promise_file_that_was_deleted_is_refused(place: Place) -> None:
    """Trial E8: it was taken for a backup, and a lost commit would not have been missed."""
    await place.write()
    (place.directory / "promise").unlink()
    await check_refused_then_accepted(place, 22, TAIL)


def test_every_case_has_its_number_and_its_test() -> None:
    assert [case.number for case in CASES] == list(range(1, len(CASES) + 1))
    tested = {
        int(number)
        for module in (sys.modules[__name__], test_recovery_ended)
        for number in re.findall(r"test_case_(\d+)_", " ".join(vars(module)))
    }
    assert tested == {case.number for case in CASES}
    named = [value for value in vars(recovery_cases).values() if isinstance(value, type(CASES[0]))]
    assert len(named) == len(CASES), "a case that is not in the table"


def test_every_case_says_what_and_why() -> None:
    for case in CASES:
        assert case.condition
        assert case.because
        assert isinstance(case.decision, Decision)


async def test_other_shards_go_on_where_one_is_refused(place: Place) -> None:
    await place.write()
    place.change("UPDATE journal SET blob = x'00' WHERE position = 4")
    store = place.store()
    await store.open(2)
    await store.open_shard(1, 0, 10)
    assert await blobs_of(store, 1) == []
