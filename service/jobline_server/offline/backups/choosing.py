"""Which backups are at a place, in which order, and which of them are too many.

Names say the time of the server's clock. One that was ahead, or far behind, gives names that sort
wrongly for ever. So the order is that of the journal: a commit raises the offset of its shard, and
each start and each restore raises the epochs, which never fall.
"""

from __future__ import annotations

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
    folders = [
        folder
        for folder in place.folders()
        if NAME.fullmatch(folder) and (not store or folder.endswith(store))
    ]
    with ThreadPoolExecutor(READERS) as readers:
        found = [one for one in readers.map(lambda folder: _read(place, folder), folders) if one]
    return sorted(found, key=lambda one: (one.position, one.name), reverse=True)


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
