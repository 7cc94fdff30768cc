"""The rules of retention, over any ended store; a subclass gives the suite a way to open one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jobline_server.engine.values import JobState
from jobline_server.runtime.ended import due
from jobline_server.storage.ended_store import (
    EndedJobStore,
    EndedPart,
    EndedQuery,
    EndedSpan,
    MarkStale,
    OwnCount,
    RemoveEnded,
)
from tests.storage.ended_reference import COMPLETED, DEAD, STALE, ids_of, put, row_of
from tests.storage.ended_store_contract import Opening


class RetentionContract:
    """The suite. A subclass says how to open an empty store."""

    def opening(self) -> Opening:
        raise NotImplementedError

    async def test_oldest_is_the_first_that_ended_without_an_age_of_its_own(self) -> None:
        """Trial C5: so nobody need ask before its age is over."""
        rows = [put(1, ended_ms=500), put(2, ended_ms=300), put(3, ended_ms=100, due_ms=200)]
        async with self.opening() as store:
            await store.write([*rows, put(4, ended_ms=50, state=DEAD)])
            assert await due.oldest_ms(store, "emails", JobState.COMPLETED) == 300
            await store.write([RemoveEnded(2, 1), MarkStale(1, 1, 600, 600)])
            assert await due.oldest_ms(store, "emails", JobState.COMPLETED) is None

    async def test_newest_are_not_due_for_stale(self) -> None:
        rows = [put(i, ended_ms=1_000 - i) for i in range(10)]
        state = JobState.COMPLETED
        async with self.opening() as store:
            await store.write(rows)
            assert ids_of(await past_age(store, "emails", state, 996, 0, 99)) == [
                9,
                8,
                7,
                6,
                5,
            ]
            assert ids_of(await past_age(store, "emails", state, 996, 7, 99)) == [9, 8, 7]
            assert ids_of(await past_age(store, "emails", state, 996, 0, 2)) == [9, 8]
            assert not await past_age(store, "emails", JobState.DEAD, 996, 0, 99)

    async def test_run_is_not_cut_to_keep_the_newest(self) -> None:
        async with self.opening() as store:
            await store.write([put(0, 10, ended_ms=1), put(10, 10, ended_ms=2)])
            state = JobState.COMPLETED
            assert ids_of(await past_age(store, "emails", state, 9, 5, 99)) == [*range(10)]
            assert not await past_age(store, "emails", state, 9, 11, 99)
            assert not await past_age(store, "emails", state, 9, 20, 99)

    async def test_stale_jobs_are_due_for_deletion_oldest_first(self) -> None:
        async with self.opening() as store:
            await store.write([put(1, 3), put(5, queue="b"), put(6)])
            await store.write(
                [MarkStale(5, 1, 10, 10), MarkStale(1, 3, 20, 20), MarkStale(6, 1, 30, 30)]
            )
            spans = await long_stale(store, 30, 99)
            assert runs_of(spans) == [("b", STALE, 5, 1), ("emails", STALE, 1, 3)]
            assert len(await long_stale(store, 30, 1)) == 1

    async def test_oldest_beyond_a_number_or_a_size_are_evictable(self) -> None:
        rows = [put(i, ended_ms=i, blob=b"x" * 10) for i in range(10)]
        state = JobState.COMPLETED
        async with self.opening() as store:
            await store.write(rows)
            assert not await too_many(store, "emails", state, 10, 100, 99)
            assert ids_of(await too_many(store, "emails", state, 7, 100, 99)) == [0, 1, 2]
            assert ids_of(await too_many(store, "emails", state, 10, 75, 99)) == [0, 1, 2]
            assert ids_of(await too_many(store, "emails", state, 0, 100, 4)) == [0, 1, 2, 3]

    # What jobs say themselves.

    async def test_job_is_due_when_its_own_age_is_over_and_not_before(self) -> None:
        async with self.opening() as store:
            await store.write([put(1, due_ms=500), put(2, 3, due_ms=400, queue="b"), put(9)])
            assert not await past_own_age(store, 399, 99)
            assert runs_of(await past_own_age(store, 400, 99)) == [("b", COMPLETED, 2, 3)]
            assert ids_of(await past_own_age(store, 500, 99)) == [2, 3, 4, 1]
            assert ids_of(await past_own_age(store, 500, 1)) == [2, 3, 4]

    async def test_job_that_is_stale_is_not_due_again(self) -> None:
        async with self.opening() as store:
            await store.write([put(1, 4, due_ms=1), MarkStale(2, 1, 2, 2), RemoveEnded(4, 1)])
            assert ids_of(await past_own_age(store, 9, 99)) == [1, 3]

    async def test_queues_age_leaves_out_jobs_with_their_own(self) -> None:
        """They are neither due by it nor among its newest."""
        state = JobState.COMPLETED
        rows = [put(i, ended_ms=i, due_ms=10**6 if i % 2 else None) for i in range(10)]
        async with self.opening() as store:
            await store.write(rows)
            assert ids_of(await past_age(store, "emails", state, 9, 0, 99)) == [
                0,
                2,
                4,
                6,
                8,
            ]
            assert ids_of(await past_age(store, "emails", state, 9, 3, 99)) == [0, 2]

    async def test_queues_limits_hold_for_jobs_with_their_own(self) -> None:
        """The oldest go first, whoever says what."""
        rows = [put(9 - i, ended_ms=i, due_ms=10**6 if i % 3 else None) for i in range(10)]
        async with self.opening() as store:
            await store.write(rows)
            spans = await too_many(store, "emails", JobState.COMPLETED, 6, 10**9, 99)
            assert ids_of(spans) == [9, 8, 7, 6]

    async def test_own_counts_are_found_the_largest_first(self) -> None:
        async with self.opening() as store:
            await store.write(
                [
                    put(1, keep_count=7),
                    put(2, keep_count=3),
                    put(3, 5, keep_count=3),
                    put(10, state=DEAD, keep_count=0),
                    put(11, queue="a", keep_count=4),
                    put(12, queue="a"),
                    put(13, queue="b", keep_count=1),
                    MarkStale(13, 1, 9, 9),
                ]
            )
            assert await own_counts(store) == [
                OwnCount("emails", DEAD, 0),
                OwnCount("emails", COMPLETED, 7),
                OwnCount("emails", COMPLETED, 3),
                OwnCount("a", COMPLETED, 4),
            ]

    async def test_job_goes_when_as_many_as_it_says_ended_after_it(self) -> None:
        """Jobs of its queue and state count, whatever they say themselves; stale ones do not."""
        own = OwnCount("emails", COMPLETED, 3)
        others = [put(20, ended_ms=9, queue="b"), put(21, ended_ms=9, state=DEAD)]
        async with self.opening() as store:
            await store.write([put(1, ended_ms=1, keep_count=3), *others])
            await store.write([put(2, ended_ms=2), put(3, ended_ms=3, due_ms=10**6)])
            await store.write([put(4, ended_ms=4), MarkStale(4, 1, 5, 5)])
            assert not await beyond_own_count(store, own, 99)
            await store.write([put(5, ended_ms=5, keep_count=1)])
            assert ids_of(await beyond_own_count(store, own, 99)) == [1]

    async def test_of_jobs_that_ended_together_the_higher_id_is_the_later(self) -> None:
        rows = [put(i, keep_count=4) for i in (5, 3, 1, 7, 9, 2)]
        async with self.opening() as store:
            await store.write(rows)
            own = OwnCount("emails", COMPLETED, 4)
            assert ids_of(await beyond_own_count(store, own, 99)) == [1, 2]
            assert ids_of(await beyond_own_count(store, own, 1)) == [1]

    async def test_job_that_counts_none_goes_at_once(self) -> None:
        async with self.opening() as store:
            await store.write([put(1, keep_count=0), put(2)])
            own = OwnCount("emails", COMPLETED, 0)
            assert ids_of(await beyond_own_count(store, own, 99)) == [1]

    async def test_own_count_is_right_far_from_either_end(self) -> None:
        """However many others ended before or after."""
        rows = [put(i, ended_ms=i, keep_count=50 if 40 <= i < 60 else None) for i in range(100)]
        own = OwnCount("emails", COMPLETED, 50)
        async with self.opening() as store:
            await store.write(rows)
            assert ids_of(await beyond_own_count(store, own, 99)) == [*range(40, 50)]
            await store.write([RemoveEnded(0, 30)])
            assert ids_of(await beyond_own_count(store, own, 99)) == [*range(40, 50)]
            await store.write([RemoveEnded(95, 5)])
            assert ids_of(await beyond_own_count(store, own, 99)) == [*range(40, 45)]

    async def test_own_count_that_no_job_has_or_that_holds_for_new_ones_finds_nothing(self) -> None:
        rows = [put(i, ended_ms=i, keep_count=6 if i > 5 else None) for i in range(10)]
        async with self.opening() as store:
            await store.write(rows)
            for count in (0, 5, 6, 99):
                own = OwnCount("emails", COMPLETED, count)
                assert not await beyond_own_count(store, own, 99)

    async def test_run_is_not_cut_to_keep_its_own_count(self) -> None:
        """It goes as a whole once as many as it says ended after the last of it."""
        own = OwnCount("emails", COMPLETED, 3)
        async with self.opening() as store:
            await store.write([put(1, 5, ended_ms=1, keep_count=3), put(6, 2, ended_ms=2)])
            assert not await beyond_own_count(store, own, 99)
            await store.write([put(8, 9, ended_ms=3)])
            assert ids_of(await beyond_own_count(store, own, 99)) == [1, 2, 3, 4, 5]

    async def test_what_a_run_says_holds_for_each_part_of_it(self) -> None:
        row = put(1, 9, due_ms=5, keep_count=2)
        async with self.opening() as store:
            await store.write([row, RemoveEnded(4, 1)])
            assert await row_of(store, 3) == await row_of(store, 5) == row.row
            assert ids_of(await past_own_age(store, 5, 99)) == [1, 2, 3, *range(5, 10)]
            own = OwnCount("emails", COMPLETED, 2)
            assert ids_of(await beyond_own_count(store, own, 99)) == [1, 2, 3]


async def own_counts(store: EndedJobStore) -> list[OwnCount]:
    """All of them, one after the other."""
    found: list[OwnCount] = []
    own: OwnCount | None = None
    while (own := await store.next_own_count(own)) is not None:
        found.append(own)
    return found


async def check_retention(store: EndedJobStore) -> None:
    """What is due is what a look at all that is kept says is due."""
    parts = (await store.list(EndedQuery(limit=999))).parts
    live = sorted(
        (part for part in parts if part.row.state != STALE),
        key=lambda part: (part.row.ended_ms, part.first_id),
    )
    aged = sorted(
        (part for part in live if part.row.due_ms is not None and part.row.due_ms <= 100),
        key=lambda part: (part.row.due_ms, part.first_id),
    )
    assert spans_of(aged) == runs_of(await past_own_age(store, 100, 99))
    counts = {
        OwnCount(part.row.queue, part.row.state, part.row.keep_count)
        for part in live
        if part.row.keep_count is not None
    }
    assert set(await own_counts(store)) == counts
    for own in counts:
        same = [part for part in live if (part.row.queue, part.row.state) == (own.queue, own.state)]
        beyond = [
            part
            for place, part in enumerate(same, 1)
            if part.row.keep_count == own.count
            and sum(newer.count for newer in same[place:]) >= own.count
        ]
        assert spans_of(beyond) == runs_of(await beyond_own_count(store, own, 99))


Run = tuple[str, int, int, int]
"""Queue, state, first id and count."""


def spans_of(parts: Iterable[EndedPart]) -> list[Run]:
    return [(part.row.queue, part.row.state, part.first_id, part.count) for part in parts]


def runs_of(spans: Iterable[EndedSpan]) -> list[Run]:
    return [(span.queue, span.state, span.first_id, span.count) for span in spans]


# The rules, by position.


async def past_age(
    store: EndedJobStore, queue: str, state: JobState, before_ms: int, newest: int, limit: int
) -> Sequence[EndedSpan]:
    return await due.past_age(
        store, queue, state, ended_before_ms=before_ms, keep_newest=newest, limit=limit
    )


async def past_own_age(store: EndedJobStore, now_ms: int, limit: int) -> Sequence[EndedSpan]:
    return await due.past_own_age(store, now_ms=now_ms, limit=limit)


async def long_stale(store: EndedJobStore, before_ms: int, limit: int) -> Sequence[EndedSpan]:
    return await due.long_stale(store, now_ms=before_ms, limit=limit)


async def too_many(
    store: EndedJobStore, queue: str, state: JobState, count: int, size: int, limit: int
) -> Sequence[EndedSpan]:
    return await due.too_many(store, queue, state, keep_count=count, keep_bytes=size, limit=limit)


async def beyond_own_count(store: EndedJobStore, own: OwnCount, limit: int) -> Sequence[EndedSpan]:
    return await due.beyond_own_count(store, own, limit=limit)
