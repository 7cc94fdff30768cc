"""Loads a shard: its items, then its journal, in pages that are verified before they are returned.
A page is one hop to the thread. Nothing is read ahead: the thread would compete for Python's lock
with the loop, which works on the page before.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from jobline_server.storage.journal_check import JournalCheck
from jobline_server.storage.recovery_cases import Decision
from jobline_server.storage.sqlite import bootstrap, items, journal
from jobline_server.storage.sqlite.connection import Database
from jobline_server.storage.sqlite.pages import SQLITE_PAGE_BYTES
from jobline_server.storage.store import BadRow, ItemRow, JournalRow

# Rows per slice in which the rest of an unfinished truncation or checkpoint is deleted.
SLICE_ROWS = 2_000


async def items_of(database: Database, shard: int) -> AsyncIterator[list[ItemRow | BadRow]]:
    """See `Store.items`. Deletes superseded versions first, so that all that is left is visible."""
    row = await database.run(partial(items.shard_row, shard=shard))
    left = 1
    while left:
        clean = partial(items.truncate, shard=row, limit_rows=SLICE_ROWS)
        _, left = await database.transact(clean, items.READ_BATCH_BYTES)
    after: tuple[int, int] | None = items.BEFORE_ALL
    while after is not None:
        page = await database.run(partial(items.read_page, shard=row, after=after))
        if page.bad_generations:
            await database.transact(partial(items.set_apart, page=page), SQLITE_PAGE_BYTES)
        if page.rows:
            yield page.rows
        after = page.last


async def journal_of(database: Database, shard: int) -> AsyncIterator[list[JournalRow]]:
    """See `Store.journal`."""
    row = await database.run(partial(items.shard_row, shard=shard))
    check = JournalCheck(row)
    case = check.begin()
    while case is None:
        page = await database.run(partial(journal.read_page, shard=row, after=check.offset))
        if not page:
            break
        good, case = check.take(page)
        if good:
            yield list(good)
    case = case or check.finish()
    if case.decision is Decision.REFUSE:
        raise bootstrap.loss_of(shard, check, case)
