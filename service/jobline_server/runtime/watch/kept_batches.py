"""Batches as the feed keeps them, and those that recovery found in the journal."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from typing import NamedTuple

from jobline_server.engine.effects import Applied
from jobline_server.engine.rules import NO_RULES, JobRules
from jobline_server.runtime.watch.events import event_runs
from jobline_server.wire.event_runs import EventRun

# The most batches kept for watchers that resume, and about their bytes in memory.
BATCHES_KEPT_MAX = 10_000
BYTES_KEPT_MAX = 64 << 20
BATCH_BYTES = 200
# Of each run of events, and of each run of ids in it.
RUN_BYTES = 700
ID_BYTES = 48
# Of the rules of a job, and of each of its tags.
RULES_BYTES = 300
TAG_BYTES = 60


class KeptBatch:
    """A batch of a shard, as events. `offset` is that of its journal row if it is `written`, else
    of the row before. Events are made at once, because facts and ended jobs are many objects, which
    the garbage collector would visit while they are kept.
    """

    __slots__ = ("at_ms", "offset", "runs", "shard", "size", "written")

    def __init__(
        self,
        shard: int,
        offset: int,
        applied: Sequence[Applied],
    ) -> None:
        self.shard = shard
        self.offset = offset
        written = [each for each in applied if each.offset]
        self.written = bool(written)
        self.at_ms = _at_ms(written or applied)
        # Events of written facts come first.
        self.runs = event_runs(shard, offset, written)
        if len(written) < len(applied):
            self.runs += event_runs(shard, offset, [each for each in applied if not each.offset])
        self.size = BATCH_BYTES + sum([bytes_of(run) for run in self.runs])


def bytes_of(run: EventRun) -> int:
    """Returns about what events take in memory."""
    error = run.shared.error
    text = len(run.shared.message) + (len(error.message) if error is not None else 0)
    size = RUN_BYTES + ID_BYTES * len(run.starts) + text
    if run.columns.rules:
        return size + _rules_bytes(run.columns.rules)
    return size if run.shared.rules is NO_RULES else size + _rules_bytes([run.shared.rules])


def _rules_bytes(rules: Iterable[JobRules]) -> int:
    """Counts what many jobs share once."""
    distinct = {id(one): one for one in rules if one is not NO_RULES}
    return sum(
        [RULES_BYTES + len(one.webhook) + TAG_BYTES * len(one.tags) for one in distinct.values()]
    )


def _at_ms(applied: Sequence[Applied]) -> int:
    return applied[0].fact.at_ms


class _Replayed(NamedTuple):
    """A row of a journal."""

    shard: int
    offset: int
    applied: Sequence[Applied]
    size: int


class ReplayedBatches:
    """Collects the last batches of each shard that recovery reads from the journals; each shard has
    an equal share of what the feed keeps.
    """

    def __init__(self, shards: int) -> None:
        self._batches_max = BATCHES_KEPT_MAX // shards
        self._bytes_max = BYTES_KEPT_MAX // shards
        self._batches: list[deque[_Replayed]] = [deque() for _ in range(shards)]

    def of_shard(self, shard: int) -> Callable[[int, Sequence[Applied], int], None]:
        """Takes the facts of a shard's rows, each row with its offset and size, in order."""
        batches, size = self._batches[shard], 0

        def take(offset: int, applied: Sequence[Applied], blob_bytes: int) -> None:
            nonlocal size
            batches.append(_Replayed(shard, offset, applied, blob_bytes))
            size += blob_bytes
            while len(batches) > self._batches_max or size > self._bytes_max:
                size -= batches.popleft().size

        return take

    def in_order(self) -> Iterator[KeptBatch]:
        """Yields all batches, about by time; those of one shard in its order."""
        for batch in merge(*self._batches, key=lambda batch: _at_ms(batch.applied)):
            yield KeptBatch(batch.shard, batch.offset, batch.applied)
