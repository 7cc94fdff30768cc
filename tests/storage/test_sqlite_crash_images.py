"""Crash images: copies of a living store's files as a kill or a power cut may leave them.

The rule is one: a store that opens shows the commits up to some point, none changed, and never
fewer than were promised when the image was made; else it refuses. A WAL that is cut is a power cut
or a kill; a WAL with a flipped bit is rot, which SQLite takes for a cut, in silence.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from jobline_server.storage.sqlite.pages import SQLITE_PAGE_BYTES
from jobline_server.storage.sqlite.store import SqliteSettings, SqliteStore
from jobline_server.storage.store import CommitUnknown, DataLoss, StoreRefused
from tests.storage.rows import bad_of, blobs_of, checkpoint, items_of, job, opened, truncate_all

SMALL = SqliteSettings(ballast_bytes=0, low_space_bytes=0)
WAL_HEADER_BYTES = 32
FRAME_BYTES = 24 + SQLITE_PAGE_BYTES

Files = dict[str, bytes]


@dataclass
class Image:
    """The files after some commit, and all blobs that were acknowledged by then."""

    files: Files
    acknowledged: list[bytes]

    @property
    def wal(self) -> bytes:
        return self.files["jobline.db-wal"]

    def with_wal(self, wal: bytes) -> Files:
        return {**self.files, "jobline.db-wal": wal}


def files_of(directory: Path) -> Files:
    return {file.name: file.read_bytes() for file in directory.iterdir() if file.is_file()}


def lay_out(directory: Path, files: Files) -> None:
    """These files and no others."""
    for file in directory.iterdir():
        file.unlink()
    for name, content in files.items():
        (directory / name).write_bytes(content)


@pytest.fixture(scope="module")
async def images(tmp_path_factory: pytest.TempPathFactory) -> list[Image]:
    """A store that is written, checkpointed and truncated, copied after every commit. (Reading the
    database here drops SQLite's lock on it; the store's own lock is another file.)"""
    directory = tmp_path_factory.mktemp("living")
    store = SqliteStore(directory, SMALL)
    writer = await opened(store)
    taken = []
    for number in range(12):
        await store.commit([writer.row(b"%d" % number + b"." * (3_000 * (number % 4)))])
        if number in (3, 7):
            await store.stage(0, writer.epoch, writer.generation + 1, [job(number)], [])
            await checkpoint(store, writer, [job(100 + number)])
            await truncate_all(store)
        taken.append(Image(files_of(directory), list(writer.blobs)))
    await store.close()
    return taken


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path


async def journal_of(directory: Path, files: Files) -> tuple[list[bytes], int] | None:
    """Blobs and first offset of what a store shows of these files; None if it finds damage."""
    lay_out(directory, files)
    store = SqliteStore(directory, SMALL)
    try:
        writer = await opened(store)
        bad = await bad_of(store)
        items = await items_of(store)
        blobs = await blobs_of(store)
    except (StoreRefused, DataLoss, CommitUnknown):
        return None
    finally:
        await store.close()
        lay_out(directory, {})
    if bad:
        return None
    assert ((3, 3) in items) == ((3, 103) in items), "a checkpoint is seen whole or not at all"
    return blobs, writer.offset - len(blobs)


def check_prefix(
    shown: tuple[list[bytes], int] | None, acknowledged: list[bytes], promised: int
) -> None:
    """What is shown goes on from the checkpoint and ends at or after the promised offset."""
    assert shown is not None
    blobs, checkpoint_offset = shown
    end = checkpoint_offset + len(blobs)
    assert blobs == acknowledged[checkpoint_offset:end]
    assert end >= promised


async def test_kill_after_any_commit_loses_nothing(images: list[Image], place: Path) -> None:
    for image in images:
        shown = await journal_of(place, image.files)
        check_prefix(shown, image.acknowledged, len(image.acknowledged))


async def test_kill_between_commit_and_promise_loses_nothing(
    images: list[Image], place: Path
) -> None:
    for before, image in pairwise(images):
        files = {**image.files, "promise": before.files["promise"]}
        check_prefix(await journal_of(place, files), image.acknowledged, len(image.acknowledged))


def cuts_of(wal: bytes) -> list[int]:
    """Every frame boundary, and two places within each frame: after its header, before its end."""
    cuts = {0, 1, WAL_HEADER_BYTES - 1, len(wal)}
    for start in range(WAL_HEADER_BYTES, len(wal), FRAME_BYTES):
        cuts |= {start, start + 24, start + FRAME_BYTES - 1}
    return sorted(cut for cut in cuts if cut <= len(wal))


async def test_wal_cut_anywhere_shows_a_prefix(images: list[Image], place: Path) -> None:
    """Nothing was promised yet of what is cut: the power went before the fsync."""
    last = images[-1]
    first_promise = {**last.files, "promise": images[0].files["promise"]}
    seen = set()
    for cut in cuts_of(last.wal):
        files = {**first_promise, "jobline.db-wal": last.wal[:cut]}
        shown = await journal_of(place, files)
        if shown is None:
            continue
        check_prefix(shown, last.acknowledged, 1)
        seen.add(shown[1] + len(shown[0]))
    assert seen == set(range(1, 13)), "each commit was the last one shown for some cut"


async def test_wal_cut_below_the_promise_is_refused(images: list[Image], place: Path) -> None:
    """No cut shows less than was promised: it shows everything, or nothing."""
    last = images[-1]
    refused = 0
    for cut in cuts_of(last.wal):
        shown = await journal_of(place, last.with_wal(last.wal[:cut]))
        if shown is None:
            refused += 1
        else:
            check_prefix(shown, last.acknowledged, len(last.acknowledged))
    assert refused >= 12


async def test_flipped_bit_in_the_wal_is_refused_or_harmless(
    images: list[Image], place: Path
) -> None:
    """One bit in each frame's header and in its page: SQLite drops this frame and all that
    follow."""
    last = images[-1]
    refused = 0
    for start in range(WAL_HEADER_BYTES, len(last.wal), FRAME_BYTES):
        for at in (start + 9, start + 24 + (start * 7) % SQLITE_PAGE_BYTES):
            rotten = bytearray(last.wal)
            rotten[at] ^= 1 << at % 8
            shown = await journal_of(place, last.with_wal(bytes(rotten)))
            if shown is None:
                refused += 1
            else:
                check_prefix(shown, last.acknowledged, len(last.acknowledged))
    assert refused >= 12


async def test_wal_that_is_missing_is_refused(images: list[Image], place: Path) -> None:
    files = {name: content for name, content in images[-1].files.items() if "-wal" not in name}
    assert await journal_of(place, files) is None


async def test_flipped_bits_in_the_database_are_never_served(
    images: list[Image], place: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """After closing, everything is in the database file; one bit at a time, all over it."""
    directory = tmp_path_factory.mktemp("closed")
    lay_out(directory, images[-1].files)
    store = SqliteStore(directory, SMALL)
    await opened(store)
    await store.close()
    files = files_of(directory)
    database = files["jobline.db"]
    found = 0
    for at in range(100, len(database), 1_499):
        rotten = bytearray(database)
        rotten[at] ^= 1 << at % 8
        shown = await journal_of(place, {**files, "jobline.db": bytes(rotten)})
        if shown is None:
            found += 1
        else:
            check_prefix(shown, images[-1].acknowledged, len(images[-1].acknowledged))
    assert found > 5


async def test_refusal_keeps_the_wal_as_evidence(images: list[Image], place: Path) -> None:
    """Closing a database deletes its WAL, and with it what somebody might still read there."""
    last = images[-1]
    rotten = bytearray(last.wal)
    rotten[-5] ^= 1
    lay_out(place, last.with_wal(bytes(rotten)))
    store = SqliteStore(place, SMALL)
    with pytest.raises(StoreRefused, match="recovery case 5"):
        await store.open(0)
    assert (place / "jobline.db-wal.refused").read_bytes() == bytes(rotten)


def test_page_size_of_the_images_is_ours(images: list[Image]) -> None:
    """Otherwise the cuts above are at the wrong places."""
    assert struct.unpack(">I", images[-1].wal[8:12]) == (SQLITE_PAGE_BYTES,)
    assert (len(images[-1].wal) - WAL_HEADER_BYTES) % FRAME_BYTES == 0
