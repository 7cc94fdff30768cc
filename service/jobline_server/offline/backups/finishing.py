"""Makes a backup of a copy that lies in a folder of this machine: the checks of `jobline verify`
are made, the files are sent, and the manifest is written last.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep  # noqa: TID251  # its process has no loop

from jobline_server.offline.backups.manifest import (
    MANIFEST_FILE,
    NAME,
    BackupFile,
    BackupShard,
    Manifest,
    encode,
)
from jobline_server.offline.backups.places import PIECE_BYTES, Place
from jobline_server.offline.backups.promises import make_promise
from jobline_server.offline.checks import check
from jobline_server.offline.findings import Progress
from jobline_server.offline.opening import FORMATS, find
from jobline_server.storage.sqlite.bootstrap import DATABASE_FILE
from jobline_server.storage.sqlite.ended_store import FINISHED_FILE
from jobline_server.storage.sqlite.store import PROMISE_FILE

FILES = (FINISHED_FILE, PROMISE_FILE, DATABASE_FILE)
# The manifest goes first: what is left by a delete that was cut off is no backup.
DELETED = (MANIFEST_FILE, *FILES)
# What is read of the disk of the queue in a second, so that its commits have most of it.
BYTES_A_SECOND = 64 << 20


class NotWhole(Exception):
    """The copy is damaged, or the place does not hold what was sent to it."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a backup is to be. `keep`: how many whole ones of its store stay; 0 for all."""

    name: str
    at_ms: int
    server_version: str
    store: str
    keep: int


def finish(copy: Path, wanted: Wanted, place: Place, progress: Progress) -> Manifest:
    """Makes the backup; returns its manifest once it stands. Raises `NotWhole`, `CannotRead`,
    `OSError`, or what a library of fsspec raises.
    """
    rows = make_promise(copy)
    _check(copy, progress)
    done = progress.begin("sending", sum((copy / name).stat().st_size for name in FILES))
    files = {name: _send(copy / name, wanted.name, place, done) for name in FILES}
    manifest = Manifest(
        name=wanted.name,
        at_ms=wanted.at_ms,
        server_version=wanted.server_version,
        store=wanted.store,
        shards=tuple(BackupShard(row.shard, row.epoch, row.offset) for row in rows),
        files=files,
    )
    _check_all_there(manifest, place)
    place.put(wanted.name, MANIFEST_FILE, encode(manifest))
    return manifest


def _check(copy: Path, progress: Progress) -> None:
    bad = [found for found in check(find(copy), progress) if found.is_damaged]
    if bad:
        raise NotWhole("; ".join(f"{one.what}: {one.found}" for one in bad[:3]))


def _send(file: Path, folder: str, place: Place, done: Callable[[int], None]) -> BackupFile:
    """Sends a file, and compares what was read with what was there before, and what arrived."""
    before, size = _sum_of(file), file.stat().st_size
    digest = hashlib.sha256()

    def pieces() -> Iterator[bytes]:
        for piece in read_pieces(file):
            digest.update(piece)
            yield piece
            done(len(piece))

    place.write(folder, file.name, pieces())
    if digest.hexdigest() != before or place.size(folder, file.name) != size:
        raise NotWhole(f"{file.name} is not at its destination as it was sent")
    kind = FORMATS.get(file.name)
    return BackupFile(size, before, kind.version if kind else 0)


def _check_all_there(manifest: Manifest, place: Place) -> None:
    """Raises `NotWhole` if a file has gone since it was sent: a directory was emptied, or removed
    and made again for the next file. If it goes now, the manifest cannot be put there.
    """
    for name, file in manifest.files.items():
        try:
            is_there = place.size(manifest.name, name) == file.bytes
        except FileNotFoundError:
            is_there = False
        if not is_there:
            raise NotWhole(f"{name} is not at its destination any more")


def _sum_of(file: Path) -> str:
    digest = hashlib.sha256()
    for piece in read_pieces(file):
        digest.update(piece)
    return digest.hexdigest()


def read_pieces(file: Path) -> Iterator[bytes]:
    """Yields the content of a file, no faster than `BYTES_A_SECOND`."""
    began, count = perf_counter(), 0
    with file.open("rb") as opened:
        while piece := opened.read(PIECE_BYTES):
            yield piece
            count += len(piece)
            sleep(max(count / BYTES_A_SECOND - (perf_counter() - began), 0))


def delete_unfinished(place: Place, folder: str) -> None:
    """Deletes what a process that was cut off has sent of a backup, unless that is whole."""
    if NAME.fullmatch(folder) and not place.has(folder, MANIFEST_FILE):
        place.remove(folder, DELETED)
