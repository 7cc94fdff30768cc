"""Turns as the feed keeps them, and those that a recovery found in the journal."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from heapq import merge
from operator import attrgetter

from jobline_server.engine.endings import EndedJobs, EndedRuns, Ending, Happened
from jobline_server.runtime.commits import Turn
from jobline_server.runtime.events import event_runs
from jobline_server.wire.event_runs import EventRun

# What is kept for watchers that resume: whichever is reached first. Bytes of memory, about: what
# facts take on disk, and jobs that are there for the feed alone.
TURNS_KEPT_MAX = 10_000
BYTES_KEPT_MAX = 64 << 20
JOB_BYTES = 300


class KeptTurn:
    """What happened to a shard in a turn; `offset` is that of its journal row, if it is `written`,
    else of the one before.
    """

    __slots__ = ("_happened", "_runs", "at_ms", "offset", "shard", "size", "written")

    def __init__(
        self,
        shard: int,
        offset: int,
        happened: Sequence[Happened],
        volatile: Sequence[Happened] = (),
        *,
        size: int,
    ) -> None:
        self.shard = shard
        self.offset = offset
        self.written = bool(happened)
        self.at_ms = (happened or volatile)[0][0].at_ms
        self.size = size
        self._happened: Sequence[Sequence[Happened]] = (happened, volatile)
        self._runs: list[EventRun] | None = None

    def runs(self) -> list[EventRun]:
        """The events; those of what is written come first."""
        if self._runs is None:
            runs: list[EventRun] = []
            for happened in self._happened:
                runs += event_runs(self.shard, self.offset, happened)
            self._runs, self._happened = runs, ()
        return self._runs


def kept_turn(turn: Turn) -> KeptTurn:
    """A turn that was just told."""
    size = turn.blob_bytes + sum(map(_bytes_of, turn.endings))
    for fact, _ in turn.volatile:
        # What is never written has no blob: its payloads are here for the feed alone.
        size += JOB_BYTES + sum(map(len, getattr(fact, "payloads", ())))
    return KeptTurn(turn.shard.number, turn.offset, turn.happened, turn.volatile, size=size)


def _bytes_of(ending: Ending) -> int:
    """What an ending keeps in memory of jobs that are nowhere else any more."""
    if isinstance(ending, EndedRuns):
        payloads = ending.lot.payloads
        return len(payloads.block) * sum(ending.counts) // len(payloads)
    if isinstance(ending, EndedJobs):
        return JOB_BYTES * len(ending.jobs) + sum([len(job.payload) for job in ending.jobs])
    return 0


class ReplayedTurns:
    """What a recovery finds in the journals: of each shard the last turns, an equal share of what
    the feed keeps.
    """

    def __init__(self, shards: int) -> None:
        self._turns_max = TURNS_KEPT_MAX // shards
        self._bytes_max = BYTES_KEPT_MAX // shards
        self._turns: list[deque[KeptTurn]] = [deque() for _ in range(shards)]

    def of_shard(self, shard: int) -> Callable[[int, Sequence[Happened], int], None]:
        """Takes what happened in the rows of a shard, each with its offset and size, in order."""
        turns, size = self._turns[shard], 0

        def take(offset: int, happened: Sequence[Happened], blob_bytes: int) -> None:
            nonlocal size
            own = blob_bytes + sum(_bytes_of(one) for _, endings in happened for one in endings)
            turns.append(KeptTurn(shard, offset, happened, size=own))
            size += own
            while len(turns) > self._turns_max or size > self._bytes_max:
                size -= turns.popleft().size

        return take

    def in_order(self) -> Iterable[KeptTurn]:
        """All of them; those of one shard in its order, and about by time."""
        return merge(*self._turns, key=attrgetter("at_ms"))
