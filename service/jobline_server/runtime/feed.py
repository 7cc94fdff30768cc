"""The feed: committed turns, kept for a while for those who watch.

A watcher reads at its own pace from a bounded memory of turns. One that falls behind what is kept
is cut off and told where to resume; so is one that resumes from what is gone. The first answer
comes at once: from then on nothing is missed, and a connection that breaks before the first event
is resumed from there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.endings import EndedJobs, EndedRuns, Ending
from jobline_server.runtime.commits import Turn
from jobline_server.runtime.core import Core
from jobline_server.runtime.events import events_of, is_wanted
from jobline_server.runtime.views import EventView, WatchFilter

# What is kept for watchers that resume: whichever is reached first. Bytes of memory, about: what
# facts take on disk, and jobs that are there for the feed alone.
TURNS_KEPT_MAX = 10_000
BYTES_KEPT_MAX = 64 << 20
JOB_BYTES = 300
# Events in one answer, which with the longest errors is below the 4 MiB that many clients take, and
# how often a watcher without news hears that its call is alive.
EVENTS_PER_ANSWER = 500
# Events that are looked at in one turn of the loop, however few of them are wanted.
EVENTS_AT_ONCE = 2_000
HEARTBEAT_SECONDS = 15.0


class Feed:
    """Turns by their number in the feed; numbers only grow."""

    def __init__(self, core: Core) -> None:
        self._core = core
        # With what each keeps in memory.
        self._turns: deque[tuple[Turn, int]] = deque()
        self._first = 0
        self._bytes = 0
        # Up to here, by shard, what was committed is no longer kept.
        self._gone = [shard.committed for shard in core.shards]
        self._news = asyncio.Event()

    def told(self, turns: Sequence[Turn]) -> None:
        """Keeps committed turns, drops the oldest over the limit, and wakes the watchers."""
        for turn in turns:
            if turn.facts or turn.endings:
                size = turn.blob_bytes + sum(map(_bytes_of, turn.endings))
                self._turns.append((turn, size))
                self._bytes += size
        while len(self._turns) > TURNS_KEPT_MAX or self._bytes > BYTES_KEPT_MAX:
            oldest, size = self._turns.popleft()
            self._first += 1
            self._bytes -= size
            self._gone[oldest.shard.number] = oldest.offset
        self._news.set()

    async def watch(
        self, wanted: WatchFilter, resume_token: str
    ) -> AsyncGenerator[tuple[list[EventView], str], None]:
        """Yields events and the token to resume after them; an empty list is a heartbeat, the first
        of which says that the watch has begun. Raises `Refused` with OFFSET_GONE when the events to
        go on with are gone.
        """
        seen = self._parse(resume_token)
        at = self._first if resume_token else self._first + len(self._turns)
        reader = _Reader(wanted)
        yield [], _token(seen)
        while True:
            while self._first <= at < self._first + len(self._turns):
                turn, _ = self._turns[at - self._first]
                at += 1
                if turn.offset <= seen[turn.shard.number] and turn.facts:
                    continue
                seen[turn.shard.number] = turn.offset
                async for events, is_last in reader.answers(turn):
                    # A token stands for whole turns: half a turn is told again after a resume.
                    yield events, _token(seen) if is_last else ""
            if at < self._first:
                raise _gone()
            if not await self._wait_for_news():
                yield [], _token(seen)

    async def _wait_for_news(self) -> bool:
        self._news.clear()
        try:
            async with asyncio.timeout(HEARTBEAT_SECONDS):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def _parse(self, token: str) -> list[int]:
        """The offsets of a token, one a shard; those of now without one."""
        committed = [shard.committed for shard in self._core.shards]
        if not token:
            return committed
        parts = token.split(".")
        if len(parts) != len(committed) or not all(part.isdecimal() for part in parts):
            raise Refused(
                RefusalKind.INVALID_FIELD,
                "is not one of this server's",
                field="resume_token",
            )
        seen = [int(part) for part in parts]
        if any(own > now for own, now in zip(seen, committed, strict=True)):
            raise _gone()
        if any(own < gone for own, gone in zip(seen, self._gone, strict=True)):
            raise _gone()
        return seen


class _Reader:
    """Reads turns for one watcher, and leaves the loop free after every so many events."""

    def __init__(self, wanted: WatchFilter) -> None:
        self._wanted = wanted
        self._looked = 0

    async def answers(self, turn: Turn) -> AsyncIterator[tuple[list[EventView], bool]]:
        """The events of a turn that are wanted, in answers of a bounded length; and which is the
        last of them.
        """
        wanted = self._wanted
        answer: list[EventView] = []
        for event in events_of(turn, wanted.queues):
            if is_wanted(event, wanted):
                if len(answer) == EVENTS_PER_ANSWER:
                    yield answer, False
                    answer = []
                answer.append(event)
            await self._pause()
        if answer:
            yield answer, True
        await self._pause()

    async def _pause(self) -> None:
        self._looked += 1
        if self._looked == EVENTS_AT_ONCE:
            self._looked = 0
            await asyncio.sleep(0)


def _bytes_of(ending: Ending) -> int:
    """What an ending keeps in memory of jobs that are nowhere else any more."""
    if isinstance(ending, EndedRuns):
        payloads = ending.lot.payloads
        return len(payloads.block) * sum(ending.counts) // len(payloads)
    if isinstance(ending, EndedJobs):
        return JOB_BYTES * len(ending.jobs) + sum([len(job.payload) for job in ending.jobs])
    return 0


def _token(seen: Sequence[int]) -> str:
    return ".".join(map(str, seen))


def _gone() -> Refused:
    return Refused(
        RefusalKind.OFFSET_GONE, "the events to resume from are gone; list and watch from now"
    )
