"""Makes a data directory of a backup.

All is made in the folder `restoring` of the new directory and checked there; then the files move to
their place, jobline.db last. What a process that was killed leaves is such a folder, which the next
one takes away, or a directory without jobline.db, on which no server starts.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jobline_server.history.destination import without_credentials
from jobline_server.offline.backups.choosing import whole_ones
from jobline_server.offline.backups.finishing import FILES
from jobline_server.offline.backups.manifest import (
    MANIFEST_FILE,
    BackupFile,
    BadManifest,
    Manifest,
    NewerManifest,
    decode,
)
from jobline_server.offline.backups.places import (
    PIECE_BYTES,
    Place,
    parent_and_folder,
    place_of,
)
from jobline_server.offline.backups.promises import make_promise, raise_ids
from jobline_server.offline.checks import check
from jobline_server.offline.findings import Progress
from jobline_server.offline.opening import FORMATS, CannotRead, Why, find
from jobline_server.storage.sqlite.bootstrap import DATABASE_FILE
from jobline_server.storage.sqlite.files import (
    free_bytes,
    make_directory,
    sync_directory,
    sync_file,
)
from jobline_server.storage.store import StoreRefused

WORK_FOLDER = "restoring"
# A new file system has the second, where the directory is one.
_IGNORED = {WORK_FOLDER, "lost+found"}


@dataclass(frozen=True, slots=True)
class Found:
    """A backup, and where it is: `folder` of `place`, which may have another name than the manifest
    says, if somebody copied it. `count`: of how many it was taken, as the furthest in the journal;
    `later_named` are those of them whose names say a later time. `taken` and `older` are the paths
    or URLs of this one and of the next, "" where the backup was named, or there is no other.
    """

    place: Place
    folder: str
    manifest: Manifest
    count: int = 1
    later_named: tuple[str, ...] = ()
    taken: str = ""
    older: str = ""


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored. `skips_all`: ids that were given out since the backup are certainly not
    given out again; False for a backup so old that the store has too few ids left, or of a clock
    that was ahead.
    """

    found: Found
    skips_all: bool


def find_backup(where: str) -> Found:
    """Returns the backup that a path or URL names, or the newest one of those in it, which is
    the furthest in the journal. Raises `CannotRead`; `OSError` if a directory cannot be read.
    """
    shown = without_credentials(where)
    try:
        return _find(where, shown)
    except CannotRead:
        raise
    except Exception as error:
        if "://" not in where:
            raise
        # Any error of any library: of credentials, of names, of the network.
        why = without_credentials(str(error)) or type(error).__name__
        raise CannotRead(Why.UNREADABLE, f"{shown} cannot be reached: {why}") from error


def _find(where: str, shown: str) -> Found:
    try:
        place = place_of(where)  # first, as what it refuses has this name
        parent, folder = parent_and_folder(where)
        above = place_of(parent)
        if above.has(folder, MANIFEST_FILE):
            return Found(above, folder, _manifest_of(above, folder))
    except (ImportError, ValueError) as error:
        raise CannotRead(Why.FOREIGN, without_credentials(str(error))) from error
    found = whole_ones(place)
    if not found:
        raise CannotRead(
            Why.MISSING,
            f"there is no whole backup at {shown}",
            "A folder without manifest.json is a backup that was not finished.",
        )
    stores = {one.store for one in found}
    if len(stores) > 1:
        raise CannotRead(
            Why.FOREIGN,
            f"{shown} has backups of {len(stores)} stores: choose one",
            "The newest: " + ", ".join(_newest_of(found, store).name for store in sorted(stores)),
        )
    later = tuple(one.name for one in found if one.name > found[0].name)
    taken, *others = (f"{shown.rstrip('/')}/{one.name}" for one in found)
    return Found(
        place, found[0].name, found[0], len(found), later, taken, others[0] if others else ""
    )


def _newest_of(found: list[Manifest], store: str) -> Manifest:
    return next(one for one in found if one.store == store)


def _manifest_of(place: Place, folder: str) -> Manifest:
    try:
        with place.read(folder, MANIFEST_FILE) as file:
            manifest = decode(file.read())
    except NewerManifest as error:
        raise CannotRead(
            Why.OTHER_FORMAT, str(error), "Use the version of jobline-server that wrote it."
        ) from error
    except BadManifest as error:
        raise CannotRead(Why.DAMAGED, f"{MANIFEST_FILE} is damaged: {error}") from error
    missing = sorted(set(FILES) - manifest.files.keys())
    if missing:
        raise CannotRead(Why.DAMAGED, f"{MANIFEST_FILE} is damaged: it has no {missing[0]}")
    return manifest


def restore(found: Found, data: Path, now_ms: int, progress: Progress) -> Restored:
    """Makes `data`, which is not there yet or empty, of a backup. Raises `CannotRead`; `OSError`,
    or what a library of fsspec raises; nothing is left in `data` then.
    """
    manifest = found.manifest
    for name, file in manifest.files.items():
        _check_format(name, file)
    _check_empty(data)
    try:
        make_directory(data)
    except StoreRefused as error:
        raise CannotRead(Why.UNREADABLE, str(error)) from error
    if free_bytes(data) < manifest.total_bytes:
        raise CannotRead(
            Why.UNREADABLE,
            f"{data} has room for {free_bytes(data):,} bytes, the backup has "
            f"{manifest.total_bytes:,}",
        )
    work = data / WORK_FOLDER
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(mode=0o700)
    try:
        skips_all = _restore_in(work, found, now_ms, progress)
        for name in (*(name for name in FILES if name != DATABASE_FILE), DATABASE_FILE):
            (work / name).rename(data / name)
            sync_directory(data)
    except CannotRead as error:
        raise _of_the_taken(error, found, data) from error.__cause__
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return Restored(found, skips_all)


def _of_the_taken(error: CannotRead, found: Found, data: Path) -> CannotRead:
    """Returns an error with the backup that was taken, where nobody named it, and another one."""
    if not found.taken:
        return error
    advice = error.advice
    if found.older:
        advice = f"Restore an older one by its name: jobline restore {found.older} {data}"
    return CannotRead(error.why, f"{found.taken}: {error}", advice)


def _restore_in(work: Path, found: Found, now_ms: int, progress: Progress) -> bool:
    manifest = found.manifest
    done = progress.begin("reading", manifest.total_bytes)
    for name in FILES:
        _fetch(found, name, work / name, done)
    skips_all = raise_ids(work, manifest.at_ms, now_ms)
    make_promise(work)
    bad = [one for one in check(find(work), progress) if one.is_damaged]
    if bad:
        raise CannotRead(
            Why.DAMAGED, "the backup is damaged: " + "; ".join(f"{b.what} {b.found}" for b in bad)
        )
    for name in FILES:
        sync_file(work / name)
    return skips_all


def _fetch(found: Found, name: str, to: Path, done: Callable[[int], None]) -> None:
    """Copies a file, and compares it with what the manifest says of it."""
    wanted = found.manifest.files[name]
    digest, size = hashlib.sha256(), 0
    descriptor = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with (
            os.fdopen(descriptor, "wb") as target,
            found.place.read(found.folder, name) as source,
        ):
            while piece := source.read(PIECE_BYTES):
                size += len(piece)
                if size > wanted.bytes:
                    break
                digest.update(piece)
                target.write(piece)
                done(len(piece))
    except FileNotFoundError as error:
        raise CannotRead(Why.DAMAGED, f"{name} is missing in the backup") from error
    if size != wanted.bytes:
        more = "more" if size > wanted.bytes else f"{size:,}"
        raise CannotRead(Why.DAMAGED, f"{name} is damaged: it has {more} of {wanted.bytes:,} bytes")
    if digest.hexdigest() != wanted.sha256:
        raise CannotRead(Why.DAMAGED, f"{name} is damaged: its checksum is wrong")


def _check_format(name: str, file: BackupFile) -> None:
    ours = FORMATS.get(name)
    if ours is not None and file.format > ours.version:
        raise CannotRead(
            Why.OTHER_FORMAT,
            f"{name} has format {file.format}; this version reads format {ours.version}",
            "Use the version of jobline-server that wrote it, or a newer one.",
        )


def _check_empty(data: Path) -> None:
    if not data.exists():
        return
    if not data.is_dir():
        raise CannotRead(Why.FOREIGN, f"{data} is no directory")
    left = sorted({path.name for path in data.iterdir()} - _IGNORED)
    if left:
        raise CannotRead(
            Why.IN_USE,
            f"{data} is not empty: it has {left[0]}",
            "Restore into a new directory, or move what is there elsewhere first.",
        )
