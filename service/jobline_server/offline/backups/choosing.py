"""Which backups are at a place, in which order, and which of them are too many.

Names say the time of the server's clock. One that was ahead, or far behind, gives names that sort
wrongly for ever. So the order is that of the journal: a commit raises the offset of its shard, and
each start and each restore raises the epochs, which never fall.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from jobline_server.offline.backups.finishing import DELETED
from jobline_server.offline.backups.manifest import (
    MANIFEST_FILE,
    NAME,
    BadManifest,
    Manifest,
    decode,
)
from jobline_server.offline.backups.places import Place

# An object store takes tens of milliseconds for a manifest, and there may be 10,000.
READERS = 16


def whole_ones(place: Place, store: str = "") -> list[Manifest]:
    """Returns the backups at a place, the furthest in the journal first, of one store or of all.
    Only manifests are read: whether the files are as they should be is checked by a restore.
    """
    with ThreadPoolExecutor(READERS) as readers:
        found = _read_all(readers, place, _folders(place, store))
    return sorted(found, key=lambda one: (one.position, one.name), reverse=True)


def latest(place: Place, store: str, until_name: str) -> Manifest | None:
    """Returns the last whole backup of a store by its name; None if there is none. Those with a
    name after `until_name` are of a clock that was ahead, and come last. Manifests are read only
    until one is whole: to read all of many thousands takes longer than a server waits.
    """
    folders = _folders(place, store)
    folders.sort(key=lambda folder: (folder <= until_name, folder), reverse=True)
    with ThreadPoolExecutor(READERS) as readers:
        for at in range(0, len(folders), READERS):
            found = _read_all(readers, place, folders[at : at + READERS])
            if found:
                return found[0]
    return None


def _folders(place: Place, store: str) -> list[str]:
    """Returns the folders that have the name of a backup, of one store or of all."""
    return [
        folder
        for folder in place.folders()
        if NAME.fullmatch(folder) and (not store or folder.endswith(store))
    ]


def _read_all(readers: ThreadPoolExecutor, place: Place, folders: Iterable[str]) -> list[Manifest]:
    """Returns the manifests of whole backups, in the order of their folders."""
    return [one for one in readers.map(lambda folder: _read(place, folder), folders) if one]


def _read(place: Place, folder: str) -> Manifest | None:
    try:
        with place.read(folder, MANIFEST_FILE) as file:
            manifest = decode(file.read())
    except (FileNotFoundError, BadManifest):
        return None
    return manifest if manifest.name == folder else None


def delete_older(place: Place, newest: Manifest, keep: int) -> list[str]:
    """Deletes whole backups of the store of `newest` that are older and too many; returns their
    names. Folders that are none, backups of other stores, and those that are further in the journal
    stay.
    """
    if not keep:
        return []
    older = [
        one
        for one in whole_ones(place, newest.store)
        if one.name != newest.name and one.position <= newest.position
    ]
    gone = older[keep - 1 :]
    for one in gone:
        place.remove(one.name, DELETED)
    return [one.name for one in gone]
