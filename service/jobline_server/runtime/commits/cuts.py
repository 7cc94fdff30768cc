"""Cuts: the facts of all shards in one commit, as rows of the journal.

All shards are cut in one step. Encoding the facts of one commit may take longer than a step should,
so it is done in slices, with the loop free in between.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple

from jobline_server.engine.entries import Fact
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.storage.codec import batch_parts
from jobline_server.storage.store import JournalRow, chain_of

# Facts are encoded for so long in one step, so many between two looks at the time.
SLICE_SECONDS = 0.005
PART_FACTS = 16


class Cut(NamedTuple):
    """The facts of one shard in a commit."""

    batch: CommittedBatch
    facts: Sequence[Fact]


async def rows_of(cuts: Sequence[Cut]) -> list[JournalRow]:
    """Returns the rows of a commit, in order; there is one commit at a time. A fact never changes
    after it was decided, so other calls may be decided meanwhile.
    """
    rows: list[JournalRow] = []
    began = time.perf_counter()
    for batch, facts in cuts:
        parts: list[bytes] = []
        for at in range(0, len(facts), PART_FACTS):
            parts += batch_parts(facts[at : at + PART_FACTS])
            if time.perf_counter() - began >= SLICE_SECONDS:
                await asyncio.sleep(0)
                began = time.perf_counter()
        blob, shard, position = b"".join(parts), batch.shard, batch.slot.position
        after = chain_of(blob, position.chain)
        rows.append(
            JournalRow(shard.number, shard.epoch, batch.offset, position.chain, after, blob)
        )
        position.chain = after
        position.journal_bytes += len(blob)
        position.journal_rows += 1
    return rows
