"""The ended store on SQLite: the contract, and what is SQLite's own."""

from __future__ import annotations

import asyncio
import gc
import shutil
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobline_server.storage.ended_store import (
    EndedJobStore,
    EndedOp,
    EndedQuery,
    EndedScan,
    MarkStale,
    RemoveEnded,
    RemoveQueue,
    ScanOrder,
)
from jobline_server.storage.sqlite.ended_store import FINISHED_FILE, SqliteEndedJobStore
from jobline_server.storage.store import DataLoss, StoreRefused
from tests.storage.ended_reference import (
    COMPLETED,
    DEAD,
    STALE,
    Reference,
    everything,
    ids_of,
    put,
    row_of,
)
from tests.storage.ended_store_contract import EndedStoreContract, Opening
from tests.storage.retention_contract import RetentionContract, check_retention
from tests.storage.scan_contract import ScanContract


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[EndedJobStore]:
    store = SqliteEndedJobStore(directory)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


class InDirectory:
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path: Path) -> None:
        self._path = tmp_path

    def opening(self) -> Opening:
        return opened(self._path)


class TestSqliteEndedStore(InDirectory, EndedStoreContract):
    pass


class TestSqliteScans(InDirectory, ScanContract):
    pass


class TestSqliteRetention(InDirectory, RetentionContract):
    pass


firsts = st.integers(0, 30)
lengths = st.integers(1, 8)
puts = st.builds(
    put,
    firsts,
    lengths,
    queue=st.sampled_from(["a", "b"]),
    state=st.sampled_from([COMPLETED, DEAD]),
    ended_ms=st.integers(0, 99),
    due_ms=st.none() | st.integers(0, 199),
    keep_count=st.none() | st.integers(0, 9),
)
operations = st.lists(
    st.one_of(
        puts,
        puts,
        st.builds(MarkStale, firsts, lengths, st.integers(100, 199), st.integers(200, 299)),
        st.builds(RemoveEnded, firsts, lengths),
        st.builds(RemoveQueue, st.sampled_from(["a", "b"])),
    ),
    max_size=12,
)


async def check_replay(ops: list[EndedOp], arrived: int, page_size: int) -> None:
    """Operations that had arrived in part before a crash are done again from the begin."""
    reference = Reference()
    reference.write(ops)
    with TemporaryDirectory() as name:
        async with opened(Path(name)) as store:
            await store.write(ops[:arrived])
            await store.write(ops)
            assert await everything(store, page_size) == reference.jobs
            in_flight = Counter((row.queue, row.state) for row in reference.jobs.values())
            assert await store.counts() == in_flight
            for job_id in range(40):
                assert await row_of(store, job_id) == reference.jobs.get(job_id)
            dead = EndedQuery(queue="a", states=frozenset({DEAD, STALE}), limit=99)
            assert ids_of(await store.list(dead)) == [
                job_id
                for job_id, row in sorted(reference.jobs.items())
                if row.queue == "a" and row.state in (DEAD, STALE)
            ]
            await check_retention(store)
        assert count_bodies_nobody_needs(Path(name)) == 0


@settings(max_examples=60, deadline=None)
@given(operations, st.integers(0, 12), st.integers(1, 9))
def test_file_equals_a_dictionary_whatever_arrived_before_a_crash(
    ops: list[EndedOp], arrived: int, page_size: int
) -> None:
    asyncio.run(check_replay(ops, arrived, page_size))


def count_bodies_nobody_needs(directory: Path) -> int:
    with sqlite3.connect(directory / FINISHED_FILE) as connection:
        statement = (
            "SELECT count(*) FROM body WHERE number NOT IN (SELECT body FROM ended WHERE body)"
        )
        return int(connection.execute(statement).fetchone()[0])


def change(directory: Path, statement: str) -> None:
    connection = sqlite3.connect(directory / FINISHED_FILE)
    connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "rot",
    [
        "UPDATE ended SET blob = x'00' WHERE first_id = 5",
        "UPDATE ended SET ended_ms = ended_ms + 1 WHERE first_id = 5",
        "UPDATE ended SET run_first = 4 WHERE first_id = 5",
        "UPDATE ended SET error_message = 'x' WHERE first_id = 5",
        "UPDATE ended SET due_ms = 7 WHERE first_id = 5",
        "UPDATE ended SET keep_count = 7 WHERE first_id = 5",
    ],
)
async def test_rotten_row_is_not_served_and_its_neighbours_are(tmp_path: Path, rot: str) -> None:
    async with opened(tmp_path) as store:
        await store.write([put(4), put(5), put(6)])
    change(tmp_path, rot)
    async with opened(tmp_path) as store:
        look = await store.get_many([4, 5, 6])
        assert (sorted(look.rows), look.bad) == ([4, 6], [5])
        page = await store.list(EndedQuery())
        assert ids_of(page) == [4, 6]
        assert page.bad == [(5, 1)]
        await store.write([RemoveEnded(5, 1)])
        assert (await store.list(EndedQuery())).bad == []


async def test_list_that_fails_leaves_nothing_to_other_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial C2: what a list had open is closed on the thread of its database, also when it ends in
    an error, whose traceback is let go of elsewhere.
    """
    left: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: left.append(unraisable.exc_value))
    states = [COMPLETED, DEAD] * 3
    async with opened(tmp_path) as store:
        await store.write([put(i, state=state) for i, state in enumerate(states, 1)])
    change(tmp_path, "UPDATE ended SET error_message = CAST(x'ff' AS TEXT) WHERE first_id = 3")
    async with opened(tmp_path) as store:
        for query in (EndedQuery(queue="emails"), EndedQuery(states=frozenset({COMPLETED, DEAD}))):
            with pytest.raises(DataLoss):
                await store.list(query)
            gc.collect()
    assert left == []


async def test_list_reaches_what_is_rare_at_once(tmp_path: Path) -> None:
    """An index holds the jobs of a queue and state: those of other states are not passed."""
    rare = (2_500, 5_000, 7_499)
    query = EndedQuery(queue="emails", states=frozenset({DEAD}), limit=2)
    async with opened(tmp_path) as store:
        await store.write([put(i, state=DEAD if i in rare else COMPLETED) for i in range(7_500)])
        page = await store.list(query)
    assert (ids_of(page), page.resume_after) == ([2_500, 5_000], 5_000)


async def test_everything_is_there_after_closing(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.write([put(1, 3)])
    async with opened(tmp_path) as store:
        assert ids_of(await store.list(EndedQuery())) == [1, 2, 3]


async def test_sync_makes_a_copy_of_the_files_hold_everything(tmp_path: Path) -> None:
    """What an fsync covers cannot be seen without a power cut; that the commit is there can."""
    async with opened(tmp_path / "live") as store:
        await store.write([put(1, 3)])
        await store.sync()
        await store.sync()
        shutil.copytree(tmp_path / "live", tmp_path / "copy")
    async with opened(tmp_path / "copy") as store:
        assert ids_of(await store.list(EndedQuery())) == [1, 2, 3]


async def test_sync_commits_under_full_and_returns_to_normal(tmp_path: Path) -> None:
    """The statements are traced, because the fsync itself leaves no trace."""
    store = SqliteEndedJobStore(tmp_path)
    await store.open()
    seen: list[str] = []
    await store.database.run(lambda raw: raw.set_trace_callback(seen.append))
    await store.sync()
    assert not seen, "nothing was written, so there is nothing to sync"
    await store.write([put(1)])
    seen.clear()
    await store.sync()
    assert seen[0] == "PRAGMA synchronous = FULL"
    assert seen[-2:] == ["COMMIT", "PRAGMA synchronous = NORMAL"]
    await store.close()


async def test_file_of_something_else_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / FINISHED_FILE) as connection:
        connection.execute("CREATE TABLE note (text)")
    connection.close()
    with pytest.raises(StoreRefused, match="something else"):
        await SqliteEndedJobStore(tmp_path).open()


async def test_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / FINISHED_FILE).write_bytes(b"no database" * 1_000)
    with pytest.raises(StoreRefused):
        await SqliteEndedJobStore(tmp_path).open()


async def test_walks_and_look_ups_use_an_index(tmp_path: Path) -> None:
    """No statement sorts what it finds or scans a whole table."""
    store = SqliteEndedJobStore(tmp_path)
    await store.open()
    await store.write([put(i, queue="a", state=DEAD, keep_count=i % 2 * 2 + 1) for i in range(4)])
    seen: list[str] = []
    await store.database.run(lambda raw: raw.set_trace_callback(seen.append))
    await row_of(store, 1)
    await store.list(EndedQuery(queue="a"))
    await store.list(EndedQuery(states=frozenset({DEAD})))
    await store.list(EndedQuery(queue="a", blob_parts=((b"x",),)))
    await store.list(EndedQuery(blob_parts=((b"x", b"y"), (b"z",))))
    for order in ScanOrder:
        await store.scan(EndedScan(order, "a", DEAD, after=(1, 1), until=(9, 9)))
    ended = EndedScan(ScanOrder.ENDED, "a", DEAD, after=(1, 1))
    for scan in (ended, replace(ended, by_queue_age=True), replace(ended, keep_count=1)):
        await store.scan(scan)
        await store.count(scan)
    await store.next_own_count(None)
    await store.database.run(lambda raw: raw.set_trace_callback(None))
    statements = [statement for statement in seen if "FROM ended" in statement]
    for statement in statements:
        plan = await store.database.run(
            lambda raw, s=statement: raw.execute("EXPLAIN QUERY PLAN " + s).fetchall()  # type: ignore[misc]
        )
        steps = [str(step[3]) for step in plan]
        bad = ("SCAN ended", "SCAN body", "USE TEMP")
        assert not any(step.startswith(bad) for step in steps), (statement, steps)
        # The keys of a scan bound the search, also that of each half of a union.
        if "_ms, first_id) >" in statement:
            assert all("_ms>" in step for step in steps if step.startswith("SEARCH")), steps
    assert len(statements) >= 13
    await store.close()
