"""Runtime: all parts under one name, put together in the order in which they need each other.

What callers may ask stands here as a list; each call is a method of the part that answers it.
`open_runtime` recovers the shards and makes one; `start` lets it work, `stop` ends it with
everything on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from jobline_server.dispatch.frames import Goaway
from jobline_server.engine import limits
from jobline_server.engine.shard import Load, Shard
from jobline_server.runtime.bulk import Bulk
from jobline_server.runtime.checkpoints import JOURNAL_BYTES_MAX, Checkpoints
from jobline_server.runtime.clock import Clock
from jobline_server.runtime.commits import Place
from jobline_server.runtime.core import Core
from jobline_server.runtime.dispatcher import Dispatcher
from jobline_server.runtime.ended import EndedJobs
from jobline_server.runtime.ended_lists import dead_statistics
from jobline_server.runtime.evictions import Evictions
from jobline_server.runtime.explaining import Explaining
from jobline_server.runtime.feed import Feed
from jobline_server.runtime.kept_turns import KeptTurn
from jobline_server.runtime.looking import Looking
from jobline_server.runtime.loops import log_stray_exceptions
from jobline_server.runtime.producers import Producers
from jobline_server.runtime.pulls import Pulls
from jobline_server.runtime.queues import Queues
from jobline_server.runtime.returns import Returns
from jobline_server.runtime.settles import Settles
from jobline_server.runtime.statistics import Statistics
from jobline_server.runtime.streams import Streams
from jobline_server.runtime.upkeep import Upkeep
from jobline_server.runtime.waits import Waits
from jobline_server.runtime.workers import Workers
from jobline_server.storage.finished import Finished
from jobline_server.storage.store import Store


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    """`heartbeat_ms`: both sides of a stream send something at least this often. `grace_ms`: how
    long the jobs of a broken stream wait for its worker. `journal_bytes_max`: a journal longer
    than this is folded into tables. The rest: what the server holds at most.
    """

    heartbeat_ms: int = 5_000
    grace_ms: int = limits.DISCONNECT_GRACE_MS
    journal_bytes_max: int = JOURNAL_BYTES_MAX
    waiting_max: int = limits.SERVER_WAITING_MAX
    waiting_bytes_max: int = limits.SERVER_WAITING_BYTES_MAX
    keys_max: int = limits.KEYS_MAX
    requests_max: int = limits.REQUEST_IDS_MAX
    calls_max: int = limits.CALLS_MAX

    def load(self) -> Load:
        """What the shards may hold together, and nothing held yet."""
        return Load(
            self.waiting_max,
            self.waiting_bytes_max,
            self.keys_max,
            self.requests_max,
            self.calls_max,
        )


class Runtime:
    """The parts, and the calls they answer."""

    def __init__(  # noqa: PLR0913  # what `open_runtime` has found, once
        self,
        store: Store,
        finished: Finished,
        shards: Sequence[Shard],
        places: Sequence[Place],
        *,
        clock: Clock,
        load: Load,
        settings: RuntimeSettings,
        new_name: Callable[[], str],
        kept: Iterable[KeptTurn] = (),
    ) -> None:
        self.core = core = Core(store, shards, places, clock, load)
        self.ended = EndedJobs(core, finished)
        self.dispatcher = Dispatcher(core)
        self.settles = Settles(core, self.ended)
        self.returns = Returns(self.settles)
        self.streams = Streams(
            core,
            self.dispatcher,
            self.settles,
            self.returns,
            heartbeat_ms=settings.heartbeat_ms,
            grace_ms=settings.grace_ms,
            new_name=new_name,
        )
        self.waits = Waits(core, self.ended)
        self.feed = Feed(core, kept)
        self.evictions = Evictions()
        self.checkpoints = Checkpoints(
            core, self.ended, journal_bytes_max=settings.journal_bytes_max
        )
        self._upkeep = Upkeep(core)
        self.look = self._upkeep.look
        self._tasks: list[asyncio.Task[None]] = []
        # Who hears of a commit, in this order: first what keeps, then what tells.
        core.listen("commit_ended_jobs", self.ended.writer.told)
        core.listen("commit_waits", self.waits.told)
        core.listen("commit_evictions", self.evictions.told)
        core.listen("commit_watchers", self.feed.told)
        core.listen("commit_spans", core.spans.told)
        core.listen("commit_revokes", lambda _turns: self.streams.tell_revoked())
        self._offer_calls(new_name)

    def _offer_calls(self, new_name: Callable[[], str]) -> None:
        core = self.core
        self.push = Producers(core).push
        pulls = Pulls(core, self.dispatcher, self.returns)
        self.pull = pulls.pull
        self.untaken = pulls.untaken
        self.give_back = pulls.give_back
        self.give_back_rest = pulls.give_back_rest
        workers = Workers(core, self.settles)
        self.ack = workers.ack
        self.fail = workers.fail
        self.release = workers.release
        self.extend = workers.extend
        self.open_stream = self.streams.open_stream
        self.wait = self.waits.wait
        self.watch = self.feed.watch
        looking = Looking(core, self.ended)
        self.get_job = looking.get_job
        self.get_job_by_key = looking.get_job_by_key
        self.list_jobs = looking.list_jobs
        self.explain_job = Explaining(core, looking).explain_job
        bulk = Bulk(core, self.ended, new_name)
        self.promote_jobs = bulk.promote_jobs
        self.cancel_jobs = bulk.cancel_jobs
        self.retry_jobs = bulk.retry_jobs
        self.delete_jobs = bulk.delete_jobs
        self.dead_statistics = partial(dead_statistics, self.ended)
        queues = Queues(core, self.ended, bulk, new_name)
        self.list_queues = queues.list_queues
        self.get_queue = queues.get_queue
        self.update_queue = queues.update_queue
        self.pause_queue = queues.pause_queue
        self.resume_queue = queues.resume_queue
        self.drain_queue = queues.drain_queue
        self.clean_queue = queues.clean_queue
        self.delete_queue = queues.delete_queue
        statistics = Statistics(core, self.streams)
        self.statistics = statistics.statistics
        self.list_workers = statistics.list_workers

    @property
    def failed(self) -> asyncio.Future[None]:
        """Fails when the store did: the process must stop then."""
        return self.core.commits.failed

    def failing(self) -> list[str]:
        """What does not work, in lines; nothing while the server is well."""
        lines = [f"{name} failed again and again" for name in self.core.loops.failing()]
        return ["the storage failed", *lines] if self.failed.done() else lines

    def start(self) -> None:
        """Lets the loop work."""
        loop, loops = asyncio.get_running_loop(), self.core.loops
        self.core.heartbeat.start()
        log_stray_exceptions(loops.record("stray_tasks"))
        work = (
            self.core.commits.run(),
            loops.keep("timers", self._upkeep.step),
            loops.keep("ended_jobs", self.ended.writer.step),
        )
        self._tasks = [loop.create_task(one) for one in work]

    async def drain(self, *, seconds: float) -> None:
        """Asks workers to go, and waits for them, at most this long; then ends their streams."""
        self.core.draining = True
        now = self.core.now()
        close_ms = now.wall_ms + round(seconds * 1_000)
        self.streams.goaway_all(Goaway("the server stops", close_ms, retry_delay_ms=1_000))
        await self.streams.wait_empty(seconds)
        self.streams.end_all()

    def stop_waiting(self) -> None:
        """From now on a write that finds the disk full fails, and a checkpoint writes without a
        rest: nothing that waits keeps the server from stopping. Call it when no more calls are
        taken.
        """
        self.core.commits.waits_for_room = False
        self.checkpoints.hurry()

    async def stop(self) -> None:
        """Commits what is left, folds a long journal, and closes the files; call it after
        `start`, once.
        """
        committing, keeping_time, keeping_ended = self._tasks
        self.stop_waiting()
        try:
            keeping_time.cancel()
            self.core.loops.stop()
            self.ended.writer.stop()
            await asyncio.gather(keeping_time, keeping_ended, return_exceptions=True)
            await self.returns.finish()
            self.core.commits.close()
            await committing
            if not self.failed.done():
                await self.checkpoints.take_last()
        finally:
            self.core.heartbeat.stop()
            try:
                await self.ended.finished.close()
            finally:
                await self.core.store.close()
