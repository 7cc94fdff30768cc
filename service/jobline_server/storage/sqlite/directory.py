"""The stores of a directory: jobline.db, finished.db beside it, and the room that both share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from jobline_server.storage.sqlite.ballast import wal_bytes_max
from jobline_server.storage.sqlite.copying import DirectoryCopies
from jobline_server.storage.sqlite.ended_store import SqliteEndedJobStore
from jobline_server.storage.sqlite.store import SqliteSettings, SqliteStore
from jobline_server.storage.stores import Stores


def stores_in(directory: Path, settings: SqliteSettings | None = None) -> Stores:
    """Returns the stores of a directory, not yet opened: `store` is opened before `ended_store`."""
    settings = settings or SqliteSettings()
    if settings.ballast_bytes:
        wal_bytes = min(settings.database.wal_bytes, wal_bytes_max(settings.ballast_bytes))
        settings = replace(settings, database=replace(settings.database, wal_bytes=wal_bytes))
    store = SqliteStore(directory, settings)
    ended_store = SqliteEndedJobStore(directory, settings.database, beside=store)
    return Stores(
        store,
        ended_store,
        store.space,
        ended_store.minutes,
        ended_store.operations,
        DirectoryCopies(directory, lambda: (store.database, ended_store.database)),
    )
