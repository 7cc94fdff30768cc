"""What every ended store must do about scans, counts and totals, whatever it is built on; a
subclass gives it a way to open one.
"""

from __future__ import annotations

from dataclasses import replace

from jobline_server.storage.ended_store import (
    EndedScan,
    EndedSpan,
    EndedTotals,
    MarkStale,
    OwnCount,
    RemoveEnded,
    ScanOrder,
)
from tests.storage.ended_reference import COMPLETED, DEAD, STALE, ids_of, put
from tests.storage.ended_store_contract import Opening

ENDED = EndedScan(ScanOrder.ENDED, "emails", COMPLETED)


class ScanContract:
    """The suite. A subclass says how to open an empty store."""

    def opening(self) -> Opening:
        raise NotImplementedError

    async def test_scan_by_end_has_one_queue_and_state_in_order(self) -> None:
        rows = [
            put(1, 2, ended_ms=30, blob=b"abcd"),
            put(3, ended_ms=10, blob=b""),
            put(4, ended_ms=30, blob=b"x", due_ms=99, keep_count=3),
            put(5, ended_ms=5, state=DEAD),
            put(6, ended_ms=5, queue="b"),
        ]
        async with self.opening() as store:
            await store.write(rows)
            assert list(await store.scan(ENDED)) == [
                EndedSpan("emails", COMPLETED, 3, 1, at_ms=10, bytes=0),
                EndedSpan("emails", COMPLETED, 1, 2, at_ms=30, bytes=4),
                EndedSpan("emails", COMPLETED, 4, 1, at_ms=30, bytes=1),
            ]
            assert ids_of(await store.scan(replace(ENDED, by_queue_age=True))) == [3, 1, 2]
            assert ids_of(await store.scan(replace(ENDED, keep_count=3))) == [4]
            assert ids_of(await store.scan(replace(ENDED, keep_count=2))) == []

    async def test_scan_goes_from_one_key_to_another_and_to_its_limit(self) -> None:
        async with self.opening() as store:
            await store.write([put(i, ended_ms=10 * (i // 2)) for i in range(10)])
            for after, until, ids in (
                ((-1, -1), (10, 2), [0, 1, 2]),
                ((10, 2), (20, 99), [3, 4, 5]),
                ((30, 7), (1 << 62, 0), [8, 9]),
                ((20, 4), (20, 4), []),
            ):
                scan = replace(ENDED, after=after, until=until)
                assert ids_of(await store.scan(scan)) == ids
                assert await store.count(scan) == len(ids)
            assert ids_of(await store.scan(replace(ENDED, limit=2))) == [0, 1]
            assert ids_of(await store.scan(replace(ENDED, limit=0))) == []

    async def test_scan_can_be_resumed_behind_the_last_part_that_it_found(self) -> None:
        times = [7, 3, 3, 9, 0, 3, 7]
        scan, found = replace(ENDED, limit=2), []
        async with self.opening() as store:
            await store.write([put(i, ended_ms=ms) for i, ms in enumerate(times)])
            while spans := await store.scan(scan):
                found += ids_of(spans)
                scan = replace(scan, after=spans[-1].key())
        assert found == sorted(range(7), key=lambda i: (times[i], i))

    async def test_count_is_exact_below_its_limit(self) -> None:
        """It may stop counting there: a part has one job at least."""
        ages = [None, 99]
        async with self.opening() as store:
            await store.write([put(3 * i, 3, ended_ms=i, due_ms=ages[i % 2]) for i in range(10)])
            assert await store.count(ENDED) == 30
            assert await store.count(replace(ENDED, by_queue_age=True)) == 15
            assert await store.count(replace(ENDED, limit=4)) >= 4
            assert await store.count(replace(ENDED, after=(8, 24), limit=4)) == 3

    async def test_scan_of_own_ages_has_all_queues_but_nothing_stale(self) -> None:
        scan = EndedScan(ScanOrder.DUE, until=(400, 99))
        async with self.opening() as store:
            await store.write([put(1, due_ms=500), put(2, 3, due_ms=400, queue="b"), put(9)])
            await store.write([MarkStale(3, 1, 7, 7), RemoveEnded(4, 1)])
            (span,) = await store.scan(scan)
            assert (span.queue, span.at_ms, span.ids()) == ("b", 400, range(2, 3))
            assert ids_of(await store.scan(replace(scan, until=(500, 99)))) == [2, 1]

    async def test_scan_of_stale_jobs_has_all_queues_by_when_they_are_deleted(self) -> None:
        marks = [MarkStale(5, 1, 4, 10), MarkStale(1, 3, 1, 20), MarkStale(6, 1, 2, 30)]
        async with self.opening() as store:
            await store.write([put(1, 3), put(5, queue="b"), put(6), put(7)])
            await store.write(marks)
            spans = await store.scan(EndedScan(ScanOrder.STALE, until=(20, 99)))
            assert [(span.queue, span.state, span.at_ms) for span in spans] == [
                ("b", STALE, 10),
                ("emails", STALE, 20),
            ]
            assert ids_of(spans) == [5, 1, 2, 3]

    async def test_a_time_of_their_own_says_when_stale_jobs_are_deleted(self) -> None:
        """At most as long as their queue says; and it stays when their part comes apart."""
        scan = EndedScan(ScanOrder.STALE)
        async with self.opening() as store:
            await store.write(
                [
                    put(1, 3, delete_after_ms=5),
                    put(4, delete_after_ms=0),
                    put(5),
                    put(6, delete_after_ms=5_000),
                ]
            )
            await store.write([MarkStale(1, 2, 100, 900), MarkStale(4, 3, 100, 900)])
            spans = await store.scan(scan)
            assert [(span.first_id, span.at_ms) for span in spans] == [
                (4, 100),
                (1, 105),
                (5, 900),
                (6, 900),
            ]
            await store.write([RemoveEnded(1, 1), MarkStale(3, 1, 200, 900)])
            spans = await store.scan(scan)
            assert [(span.first_id, span.at_ms) for span in spans] == [
                (4, 100),
                (2, 105),
                (3, 205),
                (5, 900),
                (6, 900),
            ]
            found = await store.get_many([2, 3, 4, 5, 6])
            assert [row.delete_ms for row in found.rows.values()] == [105, 205, 100, 900, 900]
            assert not found.bad

    async def test_scan_of_automatic_retries_has_the_dead_jobs_of_one_queue(self) -> None:
        scan = EndedScan(ScanOrder.RETRY, "emails", until=(500, 99))
        rows = [
            put(1, state=DEAD, retry_ms=500),
            put(2, state=DEAD, retry_ms=400),
            put(3, state=DEAD),
            put(4, state=DEAD, retry_ms=100, queue="b"),
            put(5, state=DEAD, retry_ms=600),
            put(6, state=DEAD, retry_ms=300),
        ]
        async with self.opening() as store:
            await store.write([*rows, MarkStale(6, 1, 7, 7)])
            assert [(span.first_id, span.at_ms) for span in await store.scan(scan)] == [
                (2, 400),
                (1, 500),
            ]
            assert ids_of(await store.scan(replace(scan, limit=1))) == [2]
            assert ids_of(await store.scan(replace(scan, after=(400, 2)))) == [1]
            await store.write([RemoveEnded(2, 1)])
            assert ids_of(await store.scan(scan)) == [1]

    async def test_row_with_an_automatic_retry_is_read_back_whole(self) -> None:
        row = put(1, state=DEAD, retry_ms=500)
        async with self.opening() as store:
            await store.write([row])
            found = await store.get_many([1])
            assert found.rows == {1: row.row}

    async def test_totals_are_those_of_one_queue_and_state(self) -> None:
        async with self.opening() as store:
            await store.write([put(1, 4, blob=b"x" * 40), put(5, blob=b"y", due_ms=9), put(6)])
            await store.write([RemoveEnded(6, 1), put(7, queue="b"), put(8, state=DEAD)])
            assert await store.totals("emails", COMPLETED) == EndedTotals(5, 41, 4)
            await store.write([MarkStale(2, 1, 9, 9)])
            assert await store.totals("emails", COMPLETED) == EndedTotals(4, 31, 3)
            assert await store.totals("emails", STALE) == EndedTotals(1, 10, 1)
            assert await store.totals("nobody", DEAD) == EndedTotals(0, 0, 0)

    async def test_own_counts_are_found_one_after_another(self) -> None:
        async with self.opening() as store:
            assert await store.next_own_count(None) is None
            await store.write([put(1, keep_count=7), put(2, 5, keep_count=3), put(9)])
            await store.write([put(10, queue="a", keep_count=4), put(11, keep_count=5)])
            await store.write([MarkStale(11, 1, 9, 9)])
            found, own = [], None
            while (own := await store.next_own_count(own)) is not None:
                found.append((own.queue, own.count))
            assert found == [("emails", 7), ("emails", 3), ("a", 4)]
            assert await store.next_own_count(OwnCount("emails", COMPLETED, -1)) == OwnCount(
                "a", COMPLETED, 4
            )
