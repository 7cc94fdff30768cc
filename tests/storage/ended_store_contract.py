"""What every ended store must do, whatever it is built on; a subclass gives it a way to open one.
The reference it is compared with stands in `ended_reference.py`.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from random import Random

import pytest

from jobline_server.storage.ended_store import (
    READ_BATCH_BYTES,
    EndedJobStore,
    EndedLookup,
    EndedOp,
    EndedPage,
    EndedQuery,
    EndedRow,
    MarkStale,
    PutEnded,
    RemoveEnded,
    RemoveQueue,
)
from tests.storage.ended_reference import (
    COMPLETED,
    DEAD,
    STALE,
    Reference,
    everything,
    ids_of,
    put,
    row_of,
    run_of,
    stale,
)

__all__ = ["EndedStoreContract", "Opening", "Reference"]

Opening = AbstractAsyncContextManager[EndedJobStore]


class EndedStoreContract:
    """The suite. A subclass says how to open an empty store."""

    def opening(self) -> Opening:
        raise NotImplementedError

    async def test_job_is_found_with_all_that_was_written(self) -> None:
        row = run_of(7, error_type="E", error_message="no such host", reason=1, name="send")
        async with self.opening() as store:
            await store.write([PutEnded(row)])
            assert await row_of(store, 7) == row

    async def test_every_job_of_a_run_is_found_by_its_id(self) -> None:
        async with self.opening() as store:
            await store.write([put(100, 1_000)])
            assert await row_of(store, 99) is None
            assert await row_of(store, 100) == await row_of(store, 1_099) == run_of(100, 1_000)
            assert await row_of(store, 1_100) is None

    async def test_many_jobs_are_found_in_few_looks(self) -> None:
        """Those that share a row, those that do not, and those that are not there."""
        rows = [run_of(first_id, 2) for first_id in range(1, 9_001, 3)]
        asked = list(range(9_001))
        async with self.opening() as store:
            await store.write([PutEnded(row) for row in rows])
            found: dict[int, EndedRow] = {}
            looks = 0
            while asked:
                look = await store.get_many(asked)
                found |= look.rows
                asked = asked[look.looked :]
                looks += 1
        assert found == {row.first_id + at: row for row in rows for at in (0, 1)}
        assert 1 < looks < 10

    @pytest.mark.parametrize("seed", range(20))
    async def test_many_jobs_are_found_in_any_order(self, seed: int) -> None:
        """Trial E3: ids out of order and repeated find the same rows as each id alone."""
        chance = Random(seed)
        rows = [run_of(first_id, 3) for first_id in range(10, 60, 5)]
        asked = chance.choices(range(65), k=80)
        async with self.opening() as store:
            await store.write([PutEnded(row) for row in rows])
            look = await store.get_many(asked)
            alone = {job_id: await row_of(store, job_id) for job_id in asked}
        assert look == EndedLookup({i: row for i, row in alone.items() if row}, [], len(asked))

    async def test_looks_at_large_jobs_are_bounded_by_their_bytes(self) -> None:
        blob = bytes(READ_BATCH_BYTES // 2)
        async with self.opening() as store:
            await store.write([put(job_id, blob=blob) for job_id in (1, 2, 3)])
            look = await store.get_many([1, 2, 3])
        assert (sorted(look.rows), look.looked) == ([1, 2], 2)

    async def test_job_that_was_put_back_is_gone_and_its_neighbours_stay(self) -> None:
        async with self.opening() as store:
            await store.write([put(100, 10), RemoveEnded(104, 1)])
            assert await row_of(store, 104) is None
            assert await row_of(store, 103) == await row_of(store, 105) == run_of(100, 10)
            assert ids_of(await store.list(EndedQuery())) == [*range(100, 104), *range(105, 110)]

    async def test_job_that_was_put_back_and_ended_again_is_shown_as_it_ended_last(self) -> None:
        again = run_of(100, state=DEAD, ended_ms=2_000)
        async with self.opening() as store:
            await store.write([put(100, 10), RemoveEnded(100, 1), PutEnded(again)])
            assert await row_of(store, 100) == again
            assert await row_of(store, 101) == run_of(100, 10)
            assert await store.counts() == {("emails", COMPLETED): 9, ("emails", DEAD): 1}

    async def test_run_disappears_with_its_last_job(self) -> None:
        async with self.opening() as store:
            await store.write([put(1, 3), RemoveEnded(2, 1), RemoveEnded(1, 1)])
            await store.write([RemoveEnded(3, 1)])
            assert await everything(store) == {}
            assert await store.counts() == {}

    async def test_part_of_a_run_becomes_stale_and_keeps_its_former_state(self) -> None:
        async with self.opening() as store:
            await store.write([put(1, 4), MarkStale(2, 2, 5_000, 5_000)])
            states = [(await everything(store))[i].state for i in (1, 2, 3, 4)]
            assert states == [COMPLETED, STALE, STALE, COMPLETED]
            assert await row_of(store, 2) == stale(run_of(1, 4), 5_000, 5_000)

    async def test_stale_job_stays_stale_since_the_first_time(self) -> None:
        async with self.opening() as store:
            await store.write(
                [put(1), MarkStale(1, 1, 5_000, 5_000), MarkStale(1, 1, 6_000, 6_000)]
            )
            assert await row_of(store, 1) == stale(run_of(1), 5_000, 5_000)

    async def test_queue_is_removed_whole_and_others_stay(self) -> None:
        ops = [put(i, queue="a" if i % 2 else "b") for i in range(1_200)]
        async with self.opening() as store:
            await store.write([*ops, RemoveQueue("a"), put(9_999, queue="a")])
            assert await store.counts() == {("b", COMPLETED): 600, ("a", COMPLETED): 1}

    async def test_list_heeds_every_condition(self) -> None:
        rows = [
            run_of(1, queue="a", name="x", ended_ms=10),
            run_of(2, queue="a", state=DEAD, reason=2, error_type="E", error_message="deep 404"),
            run_of(3, queue="b", name="x", state=DEAD, reason=3, ended_ms=30),
        ]
        cases = {
            EndedQuery(queue="a"): [1, 2],
            EndedQuery(states=frozenset({DEAD})): [2, 3],
            EndedQuery(states=frozenset({COMPLETED})): [1],
            EndedQuery(states=frozenset({COMPLETED, DEAD}), queue="b"): [3],
            EndedQuery(reasons=frozenset({2, 9})): [2],
            EndedQuery(name="x"): [1, 3],
            EndedQuery(name=""): [2],
            EndedQuery(error_type="E"): [2],
            EndedQuery(error_contains="404"): [2],
            EndedQuery(ended_after_ms=30): [2, 3],
            EndedQuery(ended_before_ms=30): [1],
            EndedQuery(after_id=1, limit=1): [2],
            EndedQuery(queue="nobody"): [],
        }
        async with self.opening() as store:
            await store.write([PutEnded(row) for row in rows])
            for query, wanted in cases.items():
                assert ids_of(await store.list(query)) == wanted, query

    async def test_list_finds_rows_by_parts_of_their_blobs(self) -> None:
        """Of each tuple one part; also in a row of which some jobs have left."""
        rows = [
            run_of(1, 3, blob=b"red \x00 round"),
            run_of(5, blob=b"red square"),
            run_of(6, state=DEAD, blob=b"blue round"),
            run_of(7, blob=b""),
        ]
        cases = {
            ((b"red",),): [1, 3, 5],
            ((b"\x00 r",),): [1, 3],
            ((b"red",), (b"round",)): [1, 3],
            ((b"square", b"blue"),): [5, 6],
            ((b"red", b"blue"), (b"round",)): [1, 3, 6],
            ((b"green",),): [],
        }
        async with self.opening() as store:
            await store.write([*map(PutEnded, rows), RemoveEnded(2, 1)])
            for parts, wanted in cases.items():
                assert ids_of(await store.list(EndedQuery(blob_parts=parts))) == wanted, parts
                one = EndedQuery(blob_parts=parts, limit=1)
                pages = await pages_of(store, one)
                assert [i for page in pages for i in ids_of(page)] == wanted, parts
            dead = EndedQuery(states=frozenset({DEAD}), blob_parts=((b"round",),))
            assert ids_of(await store.list(dead)) == [6]

    async def test_pages_end_within_runs_and_go_on_there(self) -> None:
        async with self.opening() as store:
            await store.write([put(10, 5), put(20), put(30, 7), put(12, state=DEAD)])
            whole = await everything(store)
            assert list(whole) == [*range(10, 15), 20, *range(30, 37)]
            for page_size in range(1, 8):
                assert await everything(store, page_size) == whole

    async def test_list_reaches_what_is_rare_in_a_large_file(self) -> None:
        rare = [2_500, 5_000, 7_499]
        rows = [run_of(i, state=DEAD if i in rare else COMPLETED) for i in range(7_500)]
        async with self.opening() as store:
            await store.write([PutEnded(row) for row in rows])
            pages = await pages_of(store, EndedQuery(states=frozenset({DEAD}), limit=2))
            assert [i for page in pages for i in ids_of(page)] == rare
            assert max(len(ids_of(page)) for page in pages) <= 2
            pages = await pages_of(store, EndedQuery(name="none"))
            assert 1 < len(pages) < 10, "a search without hits comes back in between"

    async def test_long_walk_goes_on_after_a_run_and_not_within_it(self) -> None:
        rows = [run_of(3 * i, 2, blob=b"") for i in range(4_500)]
        async with self.opening() as store:
            await store.write([PutEnded(row) for row in rows])
            assert len(await everything(store, page_size=100_000)) == 9_000

    async def test_dead_jobs_are_grouped_by_what_they_have_in_common(self) -> None:
        dead = {"state": DEAD, "reason": 1}
        async with self.opening() as store:
            await store.write(
                [
                    put(1, 3, ended_ms=30, error_type="E", **dead),
                    put(9, ended_ms=20, error_type="E", **dead),
                    put(10, ended_ms=40, error_type="F", **dead),
                    put(11, ended_ms=50, queue="b", error_type="E", **dead),
                    put(12),
                ]
            )
            groups = await store.dead_statistics()
            assert [(g.queue, g.error_type, g.count, g.oldest_ms, g.newest_ms) for g in groups] == [
                ("emails", "E", 4, 20, 30),
                ("b", "E", 1, 50, 50),
                ("emails", "F", 1, 40, 40),
            ]
            assert [g.queue for g in await store.dead_statistics("b")] == ["b"]
            await store.write([RemoveEnded(9, 1), MarkStale(11, 1, 60, 60)])
            left = await store.dead_statistics()
            assert [(g.error_type, g.count, g.oldest_ms) for g in left] == [
                ("E", 3, 30),
                ("F", 1, 40),
            ]

    async def test_written_twice_is_written_once(self) -> None:
        ops: list[EndedOp] = [
            put(1, 9),
            RemoveEnded(3, 2),
            put(4, state=DEAD),
            MarkStale(5, 2, 9, 9),
            put(20),
        ]
        async with self.opening() as store:
            for cut in range(len(ops) + 1):
                await store.write([*ops[:cut], *ops])
                reference = Reference()
                reference.write(ops)
                assert await everything(store) == reference.jobs


async def pages_of(store: EndedJobStore, query: EndedQuery) -> list[EndedPage]:
    """All pages of a list."""
    pages = [await store.list(query)]
    while (after := pages[-1].resume_after) is not None:
        pages.append(await store.list(replace(query, after_id=after)))
    return pages
