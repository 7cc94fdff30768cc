"""Cuts: the facts of all shards in one commit, as rows of the journal.

All shards are cut in one step. Encoding the facts of one commit may take longer than a step should,
so it is done in slices, with the loop free in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jobline_server.engine.entries import Fact, JobsPushed, JobsRetried
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.pace import Pace
from jobline_server.storage.codec import batch_parts
from jobline_server.storage.store import JournalRow, chain_of

# Facts that are encoded between two looks at the time, and single jobs in them: one takes a
# microsecond, three with options of its own.
PART_FACTS = 16
PART_JOBS = 500
# Ids of parents that take as long to encode as a job.
PARENTS_A_JOB = 25


class Cut(NamedTuple):
    """The facts of one shard in a commit."""

    batch: CommittedBatch
    facts: Sequence[Fact]


async def rows_of(cuts: Sequence[Cut]) -> list[JournalRow]:
    """Returns the rows of a commit, in order; there is one commit at a time. A fact never changes
    after it was decided, so other calls may be decided meanwhile.
    """
    rows: list[JournalRow] = []
    pace = Pace()
    for batch, facts in cuts:
        parts: list[bytes] = []
        for part in _parts_of(facts):
            parts += batch_parts(part)
            await pace.rest()
        blob, shard, position = b"".join(parts), batch.shard, batch.slot.position
        after = chain_of(blob, position.chain)
        rows.append(
            JournalRow(shard.number, shard.epoch, batch.offset, position.chain, after, blob)
        )
        position.chain = after
        position.journal_bytes += len(blob)
        position.journal_rows += 1
    return rows


def _parts_of(facts: Sequence[Fact]) -> Iterator[Sequence[Fact]]:
    """Yields facts in order, as many as are encoded between two looks at the time."""
    if len(facts) == 1:
        yield facts
        return
    start = jobs = 0
    for end, fact in enumerate(facts, 1):
        if isinstance(fact, JobsPushed):
            jobs += len(fact.payloads)
            if fact.ties:
                parents = sum([len(ties.parents) for ties in fact.ties])
                jobs += (parents + sum(map(len, fact.parents_left))) // PARENTS_A_JOB
        elif isinstance(fact, JobsRetried):
            parents = sum([len(record.ties.parents) for record in fact.jobs])
            jobs += len(fact.jobs) + parents // PARENTS_A_JOB
        if end - start == PART_FACTS or jobs >= PART_JOBS:
            yield facts[start:end]
            start, jobs = end, 0
    if start < len(facts):
        yield facts[start:]
