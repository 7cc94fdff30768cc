"""What every store must do with items: versions staged by a checkpoint and seen after it, and cut
off what is superfluous then. A subclass says how to reach its place, as in `storage_contract.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from jobline_server.storage.store import Fenced, ItemKey, ItemKind, ItemRow, Store
from tests.storage.rows import (
    ID_BLOCK,
    Items,
    Writer,
    blobs_of,
    checkpoint,
    items_of,
    job,
    job_keys,
    opened,
    truncate_all,
)

JOB = int(ItemKind.JOB)


class CheckpointContract:
    """Checkpoints, their leftovers, and truncation."""

    def store(self) -> Store:
        raise NotImplementedError

    async def reopened(self, store: Store) -> tuple[Store, Writer]:
        await store.close()
        again = self.store()
        return again, await opened(again)

    async def test_items_are_seen_after_the_checkpoint_and_not_before(self) -> None:
        store = self.store()
        writer = await opened(store)
        await store.stage(0, writer.epoch, 1, [job(1), job(2)], [])
        assert await items_of(store) == {}
        await checkpoint(store, writer, [job(3)])
        assert set(await items_of(store)) == {(JOB, 1), (JOB, 2), (JOB, 3)}
        store, _ = await self.reopened(store)
        assert set(await items_of(store)) == {(JOB, 1), (JOB, 2), (JOB, 3)}

    async def test_items_come_by_kind_and_key_up_to_53_bits(self) -> None:
        store = self.store()
        writer = await opened(store)
        rows = [
            ItemRow(0, kind, key, b"%d" % key) for kind in ItemKind for key in (0, 7, 2**53 - 1)
        ]
        await checkpoint(store, writer, list(reversed(rows)))
        assert list((await items_of(store)).items()) == [((r.kind, r.key), r.blob) for r in rows]

    async def test_many_items_come_in_pages(self) -> None:
        store = self.store()
        writer = await opened(store)
        rows = [job(key, b"x" * 100) for key in range(9_000)] + [job(9_999, b"y" * 20_000_000)]
        await checkpoint(store, writer, rows)
        pages = [len(page) async for page in store.items(0)]
        assert sum(pages) == 9_001
        assert len(pages) > 2, "a shard is not held in memory as a whole"
        assert len(await items_of(store)) == 9_001

    async def test_shards_have_items_of_their_own(self) -> None:
        store = self.store()
        one = await opened(store)
        two = Writer.of(await store.open_shard(1, 0, ID_BLOCK))
        await checkpoint(store, one, [job(1, b"one")])
        await checkpoint(store, two, [job(1, b"two", shard=1)])
        await checkpoint(store, two, [], job_keys(1))
        assert (await items_of(store, 0), await items_of(store, 1)) == ({(JOB, 1): b"one"}, {})

    async def test_newer_version_replaces_the_older_one(self) -> None:
        store = self.store()
        writer = await opened(store)
        await checkpoint(store, writer, [job(1, b"old"), job(2, b"same")])
        await store.stage(0, writer.epoch, 2, [job(1, b"new")], [])
        assert await items_of(store) == {(JOB, 1): b"old", (JOB, 2): b"same"}
        await checkpoint(store, writer)
        assert await items_of(store) == {(JOB, 1): b"new", (JOB, 2): b"same"}

    async def test_removed_item_is_gone_after_the_checkpoint(self) -> None:
        store = self.store()
        writer = await opened(store)
        await checkpoint(store, writer, [job(1), job(2)])
        await store.stage(0, writer.epoch, 2, [], job_keys(1, 77))
        assert set(await items_of(store)) == {(JOB, 1), (JOB, 2)}
        await checkpoint(store, writer)
        assert set(await items_of(store)) == {(JOB, 2)}
        store, _ = await self.reopened(store)
        assert set(await items_of(store)) == {(JOB, 2)}

    async def test_what_comes_later_in_a_generation_counts(self) -> None:
        store = self.store()
        writer = await opened(store)
        await checkpoint(store, writer, [job(1, b"old"), job(2, b"old"), job(3, b"old")])
        await store.stage(0, writer.epoch, 2, [job(1, b"a"), job(2, b"a"), job(4)], job_keys(3))
        await store.stage(0, writer.epoch, 2, [job(1, b"b"), job(3, b"back")], job_keys(2))
        await checkpoint(store, writer, [], job_keys(4))
        assert await items_of(store) == {(JOB, 1): b"b", (JOB, 3): b"back"}

    async def test_crash_in_a_checkpoint_leaves_nothing_of_it(self) -> None:
        store = self.store()
        writer = await opened(store)
        await checkpoint(store, writer, [job(1, b"old"), job(2)])
        await store.stage(0, writer.epoch, 2, [job(1, b"staged"), job(3)], job_keys(2))
        store, writer = await self.reopened(store)
        before = {(JOB, 1): b"old", (JOB, 2): b"job"}
        assert await items_of(store) == before
        await checkpoint(store, writer, [job(4)])
        assert await items_of(store) == {**before, (JOB, 4): b"job"}

    async def test_many_leftovers_are_deleted(self) -> None:
        store = self.store()
        writer = await opened(store)
        await checkpoint(store, writer, [job(key) for key in range(0, 6_000, 2)])
        await store.stage(0, writer.epoch, 2, [job(key, b"x") for key in range(6_000)], [])
        store, writer = await self.reopened(store)
        await checkpoint(store, writer)
        assert list(await items_of(store)) == [(JOB, key) for key in range(0, 6_000, 2)]

    @pytest.mark.parametrize("generation", [0, 1, 3])
    async def test_checkpoint_of_another_generation_is_fenced(self, generation: int) -> None:
        store = self.store()
        writer = await opened(store)
        await checkpoint(store, writer, [job(1)])
        with pytest.raises(Fenced):
            await store.stage(0, writer.epoch, generation, [job(2)], [])
        with pytest.raises(Fenced):
            await store.finish_checkpoint(0, writer.epoch, generation, 0, 0, [job(2)], [])
        assert set(await items_of(store)) == {(JOB, 1)}

    async def test_checkpoint_of_what_is_not_committed_is_fenced(self) -> None:
        store = self.store()
        writer = await opened(store)
        with pytest.raises(Fenced):
            await store.finish_checkpoint(0, writer.epoch, 1, 5, 0, [job(1)], [])
        assert await items_of(store) == {}

    async def test_journal_begins_after_the_checkpoint(self) -> None:
        store = self.store()
        writer = await opened(store)
        await store.commit([writer.row(b"a")])
        await store.commit([writer.row(b"b")])
        await checkpoint(store, writer, [job(1)])
        await store.commit([writer.row(b"c")])
        assert await blobs_of(store) == [b"c"], "before truncation"
        await truncate_all(store)
        assert await blobs_of(store) == [b"c"], "after truncation"
        store, writer = await self.reopened(store)
        assert await blobs_of(store) == [b"c"], "after a restart"
        await store.commit([writer.row(b"d")])
        assert await blobs_of(store) == [b"c", b"d"]

    async def test_checkpoint_may_be_of_an_earlier_offset_than_the_last(self) -> None:
        store = self.store()
        writer = await opened(store)
        await store.commit([writer.row(b"a")])
        offset, chain = writer.offset, writer.chain
        await store.commit([writer.row(b"b")])
        await store.finish_checkpoint(0, writer.epoch, 1, offset, chain, [job(1)], [])
        await truncate_all(store)
        assert await blobs_of(store) == [b"b"]

    async def test_truncation_comes_in_slices_and_to_an_end(self) -> None:
        store = self.store()
        writer = await opened(store)
        assert await store.truncate(0, 10) == 0
        for number in range(30):
            await store.commit([writer.row(b"%d" % number)])
        await checkpoint(store, writer, [job(key) for key in range(50)])
        await checkpoint(store, writer, [job(key, b"new") for key in range(25)], job_keys(49))
        assert await store.truncate(0, 10) > 0
        assert await truncate_all(store, limit_rows=10) >= 5
        assert await store.truncate(0, 10) == 0
        assert len(await items_of(store)) == 49
        assert await blobs_of(store) == []

    async def test_restart_before_truncation_shows_the_same_items(self) -> None:
        store = self.store()
        writer = await opened(store)
        for _ in range(3):
            rows = [job(key, b"%d" % writer.generation) for key in range(0, 5_000, 3)]
            await checkpoint(store, writer, rows, job_keys(6, 9))
            store, writer = await self.reopened(store)
        assert set((await items_of(store)).values()) == {b"2"}


@dataclass
class Plan:
    """A random walk over a shard: slices of checkpoints, restarts, truncations, and the model of
    it."""

    store: Callable[[], Store]
    visible: Items = field(default_factory=dict)
    staged: Items = field(default_factory=dict)

    async def walk(self, steps: list[tuple[str, list[int], list[int]]]) -> None:
        """Takes the steps and compares what is visible after each."""
        store = self.store()
        writer = await opened(store)
        for number, (step, puts, removals) in enumerate(steps):
            rows = [job(key, b"%d/%d" % (number, key)) for key in puts]
            keys: list[ItemKey] = job_keys(*removals)
            if step == "stage":
                await store.stage(0, writer.epoch, writer.generation + 1, rows, keys)
                self._stage(rows, removals)
            elif step == "finish":
                await checkpoint(store, writer, rows, keys)
                self._stage(rows, removals)
                self.visible, self.staged = self.staged, dict(self.staged)
            elif step == "truncate":
                await store.truncate(0, 3)
            elif step == "crash":
                await store.close()
                store = self.store()
                writer = await opened(store)
                self.staged = dict(self.visible)
            assert await items_of(store) == self.visible, (number, step)
        await store.close()

    def _stage(self, rows: list[ItemRow], removals: list[int]) -> None:
        for key in removals:
            self.staged.pop((JOB, key), None)
        self.staged.update({(JOB, row.key): row.blob for row in rows})
