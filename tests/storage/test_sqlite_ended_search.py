"""How far a search of blobs goes in one call, on SQLite."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jobline_server.storage.ended_store import EndedOp, EndedQuery, RemoveEnded
from jobline_server.storage.sqlite.ended_queries import SEARCH_BYTES, WALK_PARTS
from tests.storage.ended_reference import put
from tests.storage.test_sqlite_ended_store import opened

NOT_THERE = ((b"x",),)


@pytest.mark.parametrize("queue", ["", "emails"])
async def test_a_search_passes_so_many_bytes_a_call(tmp_path: Path, queue: str) -> None:
    """Nothing that it passes is read into Python, but SQLite reads all of it. A part counts with
    the blob that it shares.
    """
    blob = bytes(SEARCH_BYTES // 4)
    query = EndedQuery(queue=queue, blob_parts=NOT_THERE)
    async with opened(tmp_path) as store:
        await store.write([put(i, blob=blob) for i in range(1, 11)])
        ends = [
            (await store.list(replace(query, after_id=after))).resume_after for after in (0, 4, 8)
        ]
        assert ends == [4, 8, None]
        whole: list[EndedOp] = [
            put(20, 8, blob=blob * 2),
            *(RemoveEnded(i, 1) for i in (21, 23, 25)),
        ]
        await store.write(whole)
        assert (await store.list(replace(query, after_id=15))).resume_after == 22


@pytest.mark.parametrize("queue", ["", "emails"])
async def test_a_search_passes_so_many_rows_a_call(tmp_path: Path, queue: str) -> None:
    """As other lists do."""
    query = EndedQuery(queue=queue, blob_parts=NOT_THERE)
    async with opened(tmp_path) as store:
        await store.write([put(i, blob=b"") for i in range(1, WALK_PARTS + 2)])
        page = await store.list(query)
        assert (page.parts, page.resume_after) == ([], WALK_PARTS)
        page = await store.list(replace(query, after_id=WALK_PARTS))
        assert (page.parts, page.resume_after) == ([], None)
