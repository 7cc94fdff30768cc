"""Runtime: puts all parts together, in the order in which they need each other.

Each part is a field: `runtime.pushes.push(command)`, `runtime.queues.pause_queue(…)`.
`open_runtime` recovers the shards and makes a runtime; `start` lets it work, `stop` ends it with
everything on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from jobline_server.dispatch.frames import Goaway
from jobline_server.engine import limits
from jobline_server.engine.load import Load
from jobline_server.runtime.calls.batches import BatchCalls
from jobline_server.runtime.calls.bulk import Bulk
from jobline_server.runtime.calls.demands import Demands
from jobline_server.runtime.calls.flows import FlowCalls
from jobline_server.runtime.calls.groups import Groups
from jobline_server.runtime.calls.limiters import LimiterCalls
from jobline_server.runtime.calls.operations import Operations
from jobline_server.runtime.calls.payload_checks import PayloadChecks
from jobline_server.runtime.calls.pulls import PullCalls
from jobline_server.runtime.calls.push_batcher import PushBatcher
from jobline_server.runtime.calls.queues import Queues
from jobline_server.runtime.calls.returns import Returns
from jobline_server.runtime.calls.schedules import ScheduleCalls
from jobline_server.runtime.calls.settle_calls import SettleCalls
from jobline_server.runtime.calls.settles import Settles
from jobline_server.runtime.calls.settling import Settling
from jobline_server.runtime.calls.statistics import Statistics
from jobline_server.runtime.calls.streams import Streams
from jobline_server.runtime.calls.undo import Undo
from jobline_server.runtime.calls.updates import Updates
from jobline_server.runtime.calls.webhooks import WebhookCalls
from jobline_server.runtime.checkpoints import JOURNAL_BYTES_MAX, Checkpoints
from jobline_server.runtime.clock import Clock
from jobline_server.runtime.core import Core, Wants
from jobline_server.runtime.dispatcher import Dispatcher
from jobline_server.runtime.ended.ended_jobs import EndedJobs
from jobline_server.runtime.ended.evictions import Evictions
from jobline_server.runtime.ended.outcomes import OutcomeLookup
from jobline_server.runtime.ended.parents import ParentLookup
from jobline_server.runtime.loops import log_stray_exceptions
from jobline_server.runtime.messages.courier import Courier
from jobline_server.runtime.messages.links import LocalLink
from jobline_server.runtime.minutes import Minutes
from jobline_server.runtime.queries.explain import JobExplainer
from jobline_server.runtime.queries.flows import FlowQueries
from jobline_server.runtime.queries.job_queries import JobQueries
from jobline_server.runtime.queries.job_queues import JobQueues
from jobline_server.runtime.slots import ShardSlots
from jobline_server.runtime.timer_loop import TimerLoop
from jobline_server.runtime.totals import Totals
from jobline_server.runtime.watch.activity import Activity
from jobline_server.runtime.watch.feed import Feed
from jobline_server.runtime.watch.follower import Follower
from jobline_server.runtime.watch.kept_batches import KeptBatch
from jobline_server.runtime.watch.waits import Waits
from jobline_server.storage.stores import Stores
from jobline_server.telemetry.log import logger

LOG = logger("runtime")


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    """`heartbeat_ms`: both sides of a stream send a frame at least this often. `grace_ms`: how long
    the jobs of a broken stream wait for its worker. `journal_bytes_max`: a longer journal is folded
    into tables. The rest: what the server holds at most.
    """

    heartbeat_ms: int = 5_000
    grace_ms: int = limits.DISCONNECT_GRACE_MS
    journal_bytes_max: int = JOURNAL_BYTES_MAX
    waiting_max: int = limits.SERVER_WAITING_MAX
    waiting_bytes_max: int = limits.SERVER_WAITING_BYTES_MAX
    keys_max: int = limits.KEYS_MAX
    requests_max: int = limits.REQUEST_IDS_MAX
    calls_max: int = limits.CALLS_MAX
    groups_max: int = limits.GROUPS_MAX
    dependencies_max: int = limits.DEPENDENCIES_MAX
    batch_kept_ms: int = limits.BATCH_KEPT_MS_DEFAULT
    worker_limit_ms_max: int = limits.WORKER_LIMIT_MS_DEFAULT

    def load(self) -> Load:
        """Returns the limits of all shards together, with nothing counted yet."""
        return Load(
            self.waiting_max,
            self.waiting_bytes_max,
            self.keys_max,
            self.requests_max,
            self.calls_max,
            self.groups_max,
            self.dependencies_max,
            self.batch_kept_ms,
            self.worker_limit_ms_max,
        )


class Runtime:
    """The parts of the runtime, each a field."""

    def __init__(  # what `open_runtime` has found, once
        self,
        stores: Stores,
        slots: ShardSlots,
        *,
        clock: Clock,
        load: Load,
        settings: RuntimeSettings,
        new_name: Callable[[], str],
        kept: Iterable[KeptBatch] = (),
    ) -> None:
        self.core = core = Core(stores.store, slots, clock, load, stores.space)
        self.ended = EndedJobs(core, stores.ended_store)
        self.dispatcher = Dispatcher(core)
        self.settles = Settles(core, self.ended)
        self.settling = Settling(self.settles)
        self.returns = Returns(self.settles)
        self.streams = Streams(
            core,
            self.dispatcher,
            self.settling,
            self.returns,
            heartbeat_ms=settings.heartbeat_ms,
            grace_ms=settings.grace_ms,
            new_name=new_name,
        )
        self.waits = Waits(core, self.ended)
        self.minutes = Minutes(core, stores.minutes)
        self.activity = Activity(core)
        self.feed = Feed(core, kept)
        self.evictions = Evictions()
        self.totals = Totals(self.evictions)
        self.demands = Demands(core)
        self.checkpoints = Checkpoints(
            core, self.ended, journal_bytes_max=settings.journal_bytes_max
        )
        self.timer_loop = TimerLoop(core)
        self.outcomes = OutcomeLookup(core, self.ended)
        self.parents = ParentLookup(core, self.outcomes)
        self.courier = Courier(core, LocalLink(core))
        self.follower = Follower(core, self.feed)
        self.at_stop: Callable[[], None] = lambda: None
        """Ends what would delay a stop. Set by those who tell webhooks."""
        self.at_end: Callable[[], Awaitable[None]] = _nothing
        """Runs at a stop after all else that writes facts. Set by those who tell webhooks."""
        self._stores = stores
        self._tasks: list[asyncio.Task[None]] = []
        self._listen()
        self._make_calls(new_name)
        self._listen_closed()

    def _make_calls(self, new_name: Callable[[], str]) -> None:
        """Makes what producers, workers and operators call."""
        core = self.core
        self.pushes = PushBatcher(core, self.outcomes, PayloadChecks(core, self.streams.handlers))
        self.pulls = PullCalls(core, self.dispatcher, self.returns)
        self.settle_calls = SettleCalls(core, self.settling)
        self.jobs = JobQueries(core, self.ended)
        self.job_queues = JobQueues(core, self.ended)
        self.operations = Operations(core, self.ended, self._stores.operations, new_name)
        self.updates = Updates(core, self.jobs, self.pushes.checks, self.operations)
        self.explainer = JobExplainer(core, self.jobs)
        self.bulk = Bulk(core, self.ended, self.operations)
        self.batches = BatchCalls(core, self.bulk, self.operations)
        self.flows = FlowCalls(core, self.pushes.checks)
        self.flow_queries = FlowQueries(core, self.jobs, self.ended)
        self.schedules = ScheduleCalls(core, self.operations)
        self.webhooks = WebhookCalls(core, self.operations)
        self.queues = Queues(
            core, self.ended, self.bulk, self.operations, self.webhooks, self.demands, self.minutes
        )
        self.groups = Groups(core, self.operations)
        self.limiters = LimiterCalls(core, self.operations)
        self.undo = Undo(core, self.ended, self.operations)
        self.statistics = Statistics(core, self.streams, self.ended)

    def _listen(self) -> None:
        """Has the parts notified of commits: first those that keep what happened."""
        core = self.core
        self.settles.take_partials = self.waits.partials.take
        # Before the revokes: a worker that is to stop with a job has it.
        core.listen("commit_held_back", self.dispatcher.held_back.on_committed)
        core.listen("commit_ended_jobs", self.ended.writer.on_committed, Wants.ENDINGS)
        core.listen("commit_outcomes", self.outcomes.on_committed, Wants.ENDINGS)
        core.listen("commit_waits", self.waits.on_committed)
        core.listen("commit_partials", self.waits.partials.on_committed)
        core.listen("commit_watchers", self.feed.on_committed)
        core.listen("commit_spans", core.durations.on_committed, Wants.ENDINGS, is_vital=False)
        core.listen("commit_totals", self.totals.on_committed, is_vital=False)
        core.listen("commit_minutes", self.minutes.on_committed, Wants.ENDINGS, is_vital=False)
        core.listen("commit_revokes", self.streams.on_committed, Wants.REVOKED)
        core.listen("commit_messages", self.courier.on_committed)

    def _listen_closed(self) -> None:
        """Has those parts notified of a lost shard that keep callers waiting for it, or leases."""
        core = self.core
        core.listen_closed("closed_waits", self.waits.on_closed)
        core.listen_closed("closed_activity", self.activity.on_closed)
        core.listen_closed("closed_watchers", self.feed.on_closed)
        core.listen_closed("closed_held_back", self.dispatcher.held_back.on_closed)
        core.listen_closed("closed_streams", self.streams.on_closed)
        core.listen_closed("closed_pulls", self.pulls.on_closed)

    @property
    def failed(self) -> asyncio.Future[None]:
        """Returns a future that fails when the store did: the process must stop then."""
        return self.core.commits.failed

    def failing(self) -> list[str]:
        """Returns what does not work, in lines; none while the server is healthy."""
        return [*self.broken(), *map(str, self.core.slots.closed.values())]

    def broken(self) -> list[str]:
        """What keeps the server from working, in lines; a lost shard does not as long as there are
        others.
        """
        lines = [f"{name} failed again and again" for name in self.core.loops.failing()]
        return ["the storage failed", *lines] if self.failed.done() else lines

    def start(self) -> None:
        """Starts the tasks of the runtime."""
        loop, loops = asyncio.get_running_loop(), self.core.loops
        self.core.heartbeat.start()
        log_stray_exceptions(loops.record("stray_tasks"))
        work = (
            self.core.commits.run(),
            loops.keep("timers", self.timer_loop.step),
            loops.keep("ended_jobs", self.ended.writer.step),
        )
        self._tasks = [loop.create_task(one) for one in work]
        self.parents.start()
        self.courier.start()

    async def drain(self, *, seconds: float) -> None:
        """Asks workers to leave and waits up to `seconds` for them; then ends their streams."""
        self.core.draining = True
        now = self.core.now()
        close_ms = now.wall_ms + round(seconds * 1_000)
        self.streams.goaway_all(Goaway("the server stops", close_ms, retry_delay_ms=1_000))
        await self.streams.wait_empty(seconds)
        self.streams.end_all()

    def under_way(self) -> list[asyncio.Task[None]]:
        """Returns the tasks that carry out what was decided: releases, look-ups of parents, and
        messages between shards.
        """
        return [*self.returns.under_way(), *self.parents.under_way(), *self.courier.under_way()]

    def stop_waiting(self) -> None:
        """Ends all waits that would delay a stop: a write that finds the disk full fails, and
        checkpoints do not rest. Call it when no more calls are accepted.
        """
        self.core.commits.waits_for_room = False
        self.checkpoints.hurry()
        self.at_stop()

    async def stop(self) -> None:
        """Commits what is left, folds a long journal, and closes the files. Call it once; one that
        was not started has only its files to close.
        """
        if not self._tasks:
            await self._stores.close()
            return
        committing, keeping_time, keeping_ended = self._tasks
        self.stop_waiting()
        try:
            keeping_time.cancel()
            self.core.loops.stop()
            self.ended.writer.stop()
            await asyncio.gather(keeping_time, keeping_ended, return_exceptions=True)
            await self.returns.finish()
            await self.parents.stop()
            await self.courier.stop()
            if not self.failed.done():
                await self._end()
            self.core.commits.close()
            await committing
            if not self.failed.done():
                await self.checkpoints.take_last()
        finally:
            self.core.heartbeat.stop()
            await self._stores.close()

    async def _end(self) -> None:
        try:
            await self.at_end()
        except Exception:  # the rest of the stop matters more
            LOG.exception("what runs at the end of a stop failed")


async def _nothing() -> None:
    """Stands in where no webhooks are told of events."""
