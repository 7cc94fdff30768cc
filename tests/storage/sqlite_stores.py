"""What the tests of SQLite stores share: small settings, and the type of the fixture `make`."""

from __future__ import annotations

from collections.abc import Callable

from jobline_server.storage.sqlite.store import SqliteSettings, SqliteStore

# The tests run on machines with little room, and they are many.
SMALL = SqliteSettings(ballast_bytes=1 << 16, low_space_bytes=1 << 16)

Make = Callable[..., SqliteStore]
