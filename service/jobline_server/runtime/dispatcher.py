"""The dispatcher: brings ready jobs and those who want them together.

A queue that something happened to serves its consumers in turn; a consumer that has room again is
served from its queues by weight. Both end in `give`, the only caller of `decide_lease`.
"""

from __future__ import annotations

from jobline_server.dispatch.turns import shares
from jobline_server.engine.decide.lease import arm, decide_lease
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard import Shard
from jobline_server.runtime.core import Core
from jobline_server.runtime.taker import Taker


class Dispatcher:
    """Hands out jobs."""

    def __init__(self, core: Core) -> None:
        self._core = core
        core.hand_out = self.serve_queue

    def join(self, taker: Taker) -> None:
        """A consumer waits at its queues from now on."""
        self._core.turns.join(taker)

    def leave(self, taker: Taker) -> None:
        """A consumer waits no more."""
        self._core.turns.leave(taker)

    def welcome(self, taker: Taker) -> None:
        """A consumer that waits may have room again: it is given what is ready."""
        self._core.turns.wake(taker)
        self.serve_taker(taker)

    def serve_queue(self, shard: Shard, queue: Queue) -> bool:
        """Gives what is ready at a queue to those who wait there, in equal parts, as long as
        somebody takes anything. Returns whether something is left and somebody has room for it.
        """
        turns = self._core.turns
        most, given = 0, 1
        while given and queue.ready:
            given = 0
            most = turns.share_of(queue.name, queue.ready)
            for taker in turns.round(queue.name) if most else ():
                given += self.give(shard, queue, taker, most)
                if not queue.ready:
                    break
        return bool(queue.ready and most)

    def serve_taker(self, taker: Taker) -> int:
        """Gives a consumer with room what is ready at its queues; returns how many jobs. What only
        waits for its commit is looked at again after that.
        """
        given = 0
        room = taker.room()[0]
        if room <= 0:
            return 0
        for name, most in shares(taker.queues, room):
            shard = self._core.shard_of_queue(name)
            queue = shard.queues.get(name)
            if queue is not None and queue.ready and not queue.paused:
                given += self.give(shard, queue, taker, most)
                if taker.room()[0] <= 0:
                    break
                if queue.ready and shard.has_uncommitted():
                    shard.wake(queue)
        return given

    def give(self, shard: Shard, queue: Queue, taker: Taker, most: int) -> int:
        """Leases at most `most` jobs of a queue to a consumer; returns how many."""
        jobs, payload_bytes = taker.room()
        holder = taker.holder_on(shard)
        now = self._core.now()
        leased = decide_lease(
            shard,
            now,
            queue,
            holder,
            max_jobs=min(jobs, most),
            max_bytes=payload_bytes,
            names=taker.names_for(queue.name),
            lease_ms=taker.lease_ms,
            payload_bytes_max=taker.payload_bytes_max,
        )
        count = leased.count()
        if count:
            self._core.spans.waited(queue.name, leased, now.wall_ms)
            arm(shard, holder)
            taker.take(leased)
            self._core.leased(shard)
        return count
