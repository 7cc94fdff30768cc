"""What every store must do, whatever it is built on. A subclass says how to reach its place.

`store()` gives a store that is not open, over the same place each time: a second one sees what the
first one left when it was closed. Whoever gives it closes it after the test. Opening, fence,
commits and ids are here; checkpoints are in `checkpoint_contract.py`.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from jobline_server.storage.store import (
    CommitUnknown,
    Fenced,
    JournalRow,
    ShardsFailed,
    Store,
    StoreRefused,
)
from tests.storage.rows import ID_BLOCK, Writer, blobs_of, checkpoint, items_of, job, opened


class StoreContract:
    """Opening, fence, commits and ids. `can_resolve`: the store can say what became of a commit."""

    can_resolve = True

    def store(self) -> Store:
        raise NotImplementedError

    # Opening.

    async def test_new_store_takes_the_number_of_shards_it_is_told(self) -> None:
        store = self.store()
        assert await store.open(3) == 3

    async def test_new_store_that_is_told_nothing_takes_the_default(self) -> None:
        store = self.store()
        assert await store.open(0) == 8

    async def test_old_store_keeps_its_number_of_shards(self) -> None:
        for told in (3, 0, 3):
            store = self.store()
            assert await store.open(told) == 3
            await store.close()

    async def test_another_number_of_shards_is_refused_with_both_numbers(self) -> None:
        await self.made_with(3)
        with pytest.raises(StoreRefused, match="made with 3 shards and 5"):
            await self.store().open(5)

    async def made_with(self, shards: int) -> None:
        store = self.store()
        await store.open(shards)
        await store.close()

    @pytest.mark.parametrize("shards", [-1, 1_025])
    async def test_number_of_shards_out_of_range_is_refused(self, shards: int) -> None:
        with pytest.raises(StoreRefused, match="1 to 1024"):
            await self.store().open(shards)

    async def test_store_can_be_opened_after_a_refusal(self) -> None:
        await self.made_with(3)
        with pytest.raises(StoreRefused):
            await self.store().open(5)
        await self.made_with(3)

    async def test_close_may_come_twice_or_without_open(self) -> None:
        store = self.store()
        await store.close()
        await store.open(0)
        await store.close()
        await store.close()

    # Shards.

    async def test_shard_that_does_not_exist_cannot_be_opened(self) -> None:
        store = self.store()
        await store.open(2)
        with pytest.raises(ValueError, match="no shard 2"):
            await store.open_shard(2, 0, ID_BLOCK)

    async def test_each_opening_raises_the_epoch(self) -> None:
        epochs = []
        for floor in (0, 0, 500, 100, 0):
            store = self.store()
            epochs.append((await opened(store, epoch_floor=floor)).epoch)
            await store.close()
        assert epochs == [1, 2, 500, 501, 502]

    async def test_no_id_is_set_aside_twice(self) -> None:
        given: list[range] = []
        for _ in range(3):
            store = self.store()
            await store.open(2)
            image = await store.open_shard(0, 0, ID_BLOCK)
            given.append(range(image.first_free_id_sequence, image.row.id_ceiling))
            writer = Writer.of(image)
            ceiling = image.row.id_ceiling + ID_BLOCK
            await store.commit([writer.row(b"more ids")], {0: ceiling})
            given.append(range(image.row.id_ceiling, ceiling))
            await store.close()
        ids = [i for block in given for i in block]
        assert len(ids) == len(set(ids)) == 6 * ID_BLOCK
        assert 0 not in ids, "0 means no id"

    async def test_ceiling_moves_without_a_row_and_never_falls(self) -> None:
        store = self.store()
        writer = await opened(store)
        await store.commit([], {0: 9_000, 1: 8_000})
        await store.commit([], {0: 5})
        await store.commit([writer.row(b"a")], {0: 5})
        assert (await store.open_shard(0, 0, ID_BLOCK)).first_free_id_sequence == 9_000
        assert (await store.open_shard(1, 0, ID_BLOCK)).first_free_id_sequence == 8_000

    async def test_ceiling_of_another_shard_rides_along(self) -> None:
        store = self.store()
        writer = await opened(store)
        await store.commit([writer.row(b"a")], {0: 7_000, 1: 8_000})
        assert (await store.open_shard(0, 0, ID_BLOCK)).first_free_id_sequence == 7_000
        assert (await store.open_shard(1, 0, ID_BLOCK)).first_free_id_sequence == 8_000

    # Commits.

    async def test_committed_rows_come_back_in_order(self) -> None:
        store = self.store()
        writer = await opened(store)
        for number in range(5):
            await store.commit([writer.row(b"%d" % number)])
        assert await blobs_of(store) == writer.blobs
        await store.close()
        again = self.store()
        after = await opened(again)
        assert await blobs_of(again) == writer.blobs
        assert (after.offset, after.chain) == (writer.offset, writer.chain)

    async def test_journal_goes_on_after_a_restart(self) -> None:
        written: list[bytes] = []
        for number in range(3):
            store = self.store()
            writer = await opened(store)
            await store.commit([writer.row(b"%d" % number)])
            written += writer.blobs
            assert await blobs_of(store) == written
            await store.close()

    @pytest.mark.parametrize("size", [0, 1, 8_191, 100_000, 3_000_000])
    async def test_blob_of_any_size_comes_back(self, size: int) -> None:
        store = self.store()
        writer = await opened(store)
        await store.commit([writer.row(bytes([size % 251]) * size)])
        assert await blobs_of(store) == writer.blobs

    async def test_rows_of_several_shards_are_one_commit(self) -> None:
        store = self.store()
        one = await opened(store)
        two = Writer.of(await store.open_shard(1, 0, ID_BLOCK))
        await store.commit([one.row(b"one"), two.row(b"two")])
        assert (await blobs_of(store, 0), await blobs_of(store, 1)) == ([b"one"], [b"two"])

    async def test_empty_commit_is_nothing(self) -> None:
        store = self.store()
        await opened(store)
        await store.commit([])
        assert await blobs_of(store) == []

    async def test_long_journal_comes_in_pages(self) -> None:
        store = self.store()
        writer = await opened(store)
        for _ in range(20):
            await store.commit([writer.row(b"x" * 2_000_000)])
        pages = [len(page) async for page in store.journal(0)]
        assert sum(pages) == 20
        assert max(pages) < 20, "a journal is not held in memory as a whole"

    async def test_journal_may_be_left_half_read(self) -> None:
        store = self.store()
        writer = await opened(store)
        await store.commit([writer.row(b"a")])
        async with aclosing(store.journal(0)) as pages:  # type: ignore[type-var]
            async for _ in pages:
                break
        await store.commit([writer.row(b"b")])

    # The fence.

    @pytest.mark.parametrize(
        "wrong",
        [{"epoch": 99}, {"epoch": 0}, {"offset": 3}, {"offset": 1}, {"chain_before": 1}],
        ids=str,
    )
    async def test_commit_that_does_not_continue_is_fenced(self, wrong: dict[str, Any]) -> None:
        store = self.store()
        writer = await opened(store)
        await store.commit([writer.row(b"a")])
        with pytest.raises(Fenced):
            await store.commit([replace(writer.row(b"b"), **wrong)], {0: 99_999})
        assert await blobs_of(store) == [b"a"]
        image = await store.open_shard(0, 0, ID_BLOCK)
        assert image.row.offset == 1
        assert image.first_free_id_sequence == 1 + ID_BLOCK, "the ceiling stays too"

    async def test_same_row_twice_is_fenced(self) -> None:
        store = self.store()
        writer = await opened(store)
        row = writer.row(b"a")
        await store.commit([row])
        with pytest.raises(Fenced):
            await store.commit([row])
        assert await blobs_of(store) == [b"a"]

    async def test_one_fenced_row_keeps_all_others_out(self) -> None:
        store = self.store()
        one = await opened(store)
        two = Writer.of(await store.open_shard(1, 0, ID_BLOCK))
        good, bad = one.row(b"good"), replace(two.row(b"bad"), epoch=77)
        for rows in ([good, bad], [bad, good]):
            with pytest.raises(Fenced) as fenced:
                await store.commit(rows, {0: 99_999})
            assert fenced.value.shards == {1}, "the others may be committed without it"
        assert await blobs_of(store, 0) == await blobs_of(store, 1) == []
        await store.commit([good])
        assert await blobs_of(store, 0) == [b"good"]

    async def test_every_fenced_row_is_named(self) -> None:
        store = self.store()
        one = await opened(store)
        two = Writer.of(await store.open_shard(1, 0, ID_BLOCK))
        with pytest.raises(Fenced, match="1") as fenced:
            await store.commit([replace(one.row(b"a"), epoch=77), replace(two.row(b"b"), epoch=77)])
        assert fenced.value.shards == {0, 1}

    async def test_writer_of_an_older_epoch_is_fenced(self) -> None:
        store = self.store()
        old = await opened(store)
        await store.commit([old.row(b"a")])
        new = Writer.of(await store.open_shard(0, 0, ID_BLOCK))
        with pytest.raises(Fenced):
            await store.commit([old.row(b"late")])
        with pytest.raises(Fenced) as staged:
            await store.stage(0, old.epoch, 1, [job(1)], [])
        with pytest.raises(Fenced) as finished:
            await checkpoint(store, old, [job(1)])
        assert staged.value.shards == finished.value.shards == {0}
        await store.commit([new.row(b"b")])
        assert await blobs_of(store) == [b"a", b"b"]
        assert await items_of(store) == {}

    # What became of a commit.

    async def test_a_row_that_is_stored_is_resolved_as_stored_and_the_next_one_as_not(self) -> None:
        store = self.store()
        writer = await opened(store)
        stored, next_row = writer.row(b"a"), writer.row(b"b")
        await store.commit([stored])
        if not self.can_resolve:
            for row in (stored, next_row):
                with pytest.raises(CommitUnknown):
                    await self.resolved(store, row)
            return
        assert await self.resolved(store, stored) is True
        assert await self.resolved(store, next_row) is False
        await store.commit([next_row])
        assert await self.resolved(store, next_row) is True

    async def test_a_row_of_a_shard_that_others_write_is_resolved_as_fenced(self) -> None:
        store = self.store()
        old = await opened(store)
        await store.open_shard(0, 0, ID_BLOCK)
        with pytest.raises(ShardsFailed) as lost:
            await self.resolved(store, old.row(b"late"))
        assert isinstance(lost.value, Fenced) == self.can_resolve
        assert lost.value.shards == ({0} if self.can_resolve else set())

    @staticmethod
    async def resolved(store: Store, row: JournalRow) -> bool:
        return await store.resolve(row.shard, row.epoch, row.offset, row.chain)
