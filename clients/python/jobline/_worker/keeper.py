"""The keeper: a thread that looks after a worker from outside its loop and its handlers.

It notices that the server has fallen silent, starts batches that have waited long enough, lets the
window follow the work, replaces handlers that hang on after their end, and takes a stopping worker
through its stages. It runs no handler, so none can hold it up.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from jobline._context import CancelReason, Context
from jobline._worker.desk import Bell
from jobline._worker.drain import Drain, Stage
from jobline._worker.feed import Feed
from jobline._worker.log import stopping as log_stopping
from jobline._worker.patience import Patience
from jobline._worker.running import Shop
from jobline._worker.settling import cancelled_row
from jobline._worker.slots import Runners, Slot
from jobline._worker.stream import Stream
from jobline.errors import ErrorFacts, Internal, JoblineError

logger = logging.getLogger("jobline.worker")

# Seconds between looks while the worker stops: it waits for handlers and confirms, which ring no
# bell here.
DRAIN_LOOK = 0.02
# Seconds between looks otherwise, at most.
LOOK = 1.0


Place = tuple[Runners, Slot, tuple[Context, ...]]
"""Where a handler runs, and the jobs it runs for: what is there later is another handler."""


class Keeper:
    """Looks after one worker until it has stopped; then calls `stopped`, with an error if it was
    the keeper itself that broke.
    """

    def __init__(
        self,
        *,
        shop: Shop,
        feed: Feed,
        stream: Stream,
        runners: Sequence[Runners],
        drain: Drain,
        patience: Patience[Place],
        stopped: Callable[[JoblineError | None], None],
    ) -> None:
        self._shop = shop
        self._feed = feed
        self._stream = stream
        self._runners = runners
        self._drain = drain
        self._patience = patience
        self._stopped = stopped
        self._bell = Bell()  # a queue inside: safe to ring in a signal handler
        self._thread = threading.Thread(target=self._run, name="jobline-keeper", daemon=True)

    def start(self) -> None:
        """Begins to look."""
        self._thread.start()

    def look_soon(self) -> None:
        """Something changed that may need a look. Safe on any thread, and in a signal handler."""
        self._bell.ring()

    def _run(self) -> None:
        failure: JoblineError | None = None
        try:
            while self._drain.stage is not Stage.STOPPED:
                pause = self._look()
                self._bell.wait(pause)
        except Exception as error:
            logger.exception("the keeper broke: the worker stops")
            failure = Internal(f"the keeper broke: {error}", ErrorFacts(reason="WORKER_BROKE"))
        finally:
            self._feed.close()
            self._stream.stop()
            self._stopped(failure)

    def _look(self) -> float:
        """Does what is due; seconds until the next look."""
        is_silent, pause = self._shop.desk.look()
        if is_silent:
            logger.warning("the server has fallen silent: opening another stream")
            self._stream.hang_up()
            pause = LOOK
        pauses = [pause, LOOK, self._feed.flush(), self._replace_stuck(), self._look_idle()]
        self._step()
        if self._drain.stage is not Stage.WORKING:
            pauses.append(DRAIN_LOOK)
        return min(pause for pause in pauses if pause is not None)

    def _look_idle(self) -> float | None:
        """Begins the drain of a worker that ends by itself; seconds until it may."""
        desk = self._shop.desk
        is_busy = not desk.is_open or desk.held > 0 or bool(self._shop.running)
        return self._drain.look_idle(time.monotonic(), is_busy=is_busy, finished=desk.finished)

    def _replace_stuck(self) -> float | None:
        """Gives up handlers that should have stopped long ago; seconds until the next one is."""
        if not self._shop.told or self._drain.stage >= Stage.CANCELLING:
            return None
        self._shop.told = False  # before looking: who is told from now on sets it again
        now = time.monotonic()
        told = [place for place in self._places() if place[1].is_ended]
        if told:
            self._shop.told = True
        for place in self._patience.over(now, told):
            self._give_up(*place)
        deadline = self._patience.next_deadline()
        return None if deadline is None else deadline - now

    def _places(self) -> list[Place]:
        """Where handlers run."""
        return [
            (runners, slot, contexts)
            for runners in self._runners
            for slot in tuple(runners.slots)
            if (contexts := slot.contexts)
        ]

    def _give_up(self, runners: Runners, slot: Slot, contexts: tuple[Context, ...]) -> None:
        first = contexts[0]
        logger.error(
            "a handler of %s/%s ignores its end (%s; jobs %s): its place is given to another, and "
            "what it says is dropped. It is here:\n%s",
            first.queue,
            first.name,
            first.cancel_reason.value if first.cancel_reason else "",
            ", ".join(str(context.id) for context in contexts),
            slot.stack(),
        )
        for context in contexts:
            if self._shop.desk.holds(context.job):  # cancelled: its end would never be told
                self._shop.desk.settle_now(cancelled_row(context.job))
        runners.replace(slot, contexts)

    def _step(self) -> None:
        desk = self._shop.desk
        while True:
            stage = self._drain.step(
                time.monotonic(),
                is_idle=not self._shop.running,
                is_confirmed=desk.is_confirmed and not self._stream.is_calling,
            )
            if stage is None:
                return
            if stage is Stage.FINISHING:
                self._finish()
            deadline = self._drain.next_deadline()
            left = None if deadline is None else deadline - time.monotonic()
            log_stopping(stage, len(self._shop.running), left)
            if stage is Stage.CANCELLING:
                self._shop.stop(list(self._shop.running), CancelReason.STOPPING)
            elif stage is Stage.RELEASING:
                self._release()

    def _finish(self) -> None:
        """Starts nothing more, gives back what has not started, and lets the others know by when
        they should be done.
        """
        shop = self._shop
        shop.desk.drain()
        self._feed.close()
        released = shop.desk.release_held(keep=shop.running)
        # Some may have started in the very moment in which they were given back.
        shop.stop(released, CancelReason.STOPPING)
        deadline = self._drain.next_deadline()
        if deadline is not None:
            left = timedelta(seconds=deadline - time.monotonic())
            shop.set_deadline(datetime.now(UTC) + left)

    def _release(self) -> None:
        """Gives back what is still held, and says which handlers did not heed their end."""
        released = self._shop.desk.release_held()
        places = self._places()
        if places:
            logger.error(
                "handlers that did not stop in time: %d; jobs given back: %d\n%s",
                len(places),
                len(released),
                "\n".join(slot.stack() for _, slot, _ in places),
            )
