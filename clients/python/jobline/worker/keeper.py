"""The keeper: a thread that looks after a worker from outside its loop and its handlers.

It notices that the server has fallen silent, starts batches that have waited long enough, lets the
window follow the work, and takes a stopping worker through its stages. It runs no handler, so none
can hold it up.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable

from jobline.context import CancelReason
from jobline.worker.desk import Bell
from jobline.worker.drain import Drain, Stage
from jobline.worker.feed import Feed
from jobline.worker.running import Shop
from jobline.worker.stream import Stream

logger = logging.getLogger("jobline.worker")

# Seconds between looks while the worker stops: it waits for handlers and confirms, which ring no
# bell here.
DRAIN_LOOK = 0.02
# Seconds between looks otherwise, at most.
LOOK = 1.0


class Keeper:
    """Looks after one worker until it has stopped; then calls `stopped`."""

    def __init__(
        self,
        *,
        shop: Shop,
        feed: Feed,
        stream: Stream,
        drain: Drain,
        stopped: Callable[[], None],
    ) -> None:
        self._shop = shop
        self._feed = feed
        self._stream = stream
        self._drain = drain
        self._stopped = stopped
        self._bell = Bell()  # a queue inside: safe to ring in a signal handler
        self._thread = threading.Thread(target=self._run, name="jobline-keeper", daemon=True)

    def start(self) -> None:
        """Begins to look."""
        self._thread.start()

    def stop_worker(self) -> None:
        """Begins the worker's stop, or its next stage. Safe on any thread, and in a signal
        handler.
        """
        self._drain.ask()
        self._bell.ring()

    def look_soon(self) -> None:
        """Something changed that may need a look."""
        self._bell.ring()

    def _run(self) -> None:
        try:
            while self._drain.stage is not Stage.STOPPED:
                pause = self._look()
                self._bell.wait(pause)
        except Exception:
            logger.exception("the keeper broke: the worker stops")
        finally:
            self._feed.close()
            self._stream.stop()
            self._stopped()

    def _look(self) -> float:
        """Does what is due; seconds until the next look."""
        is_silent, pause = self._shop.desk.look()
        if is_silent:
            logger.warning("the server has fallen silent: opening another stream")
            self._stream.hang_up()
            pause = LOOK
        batch_pause = self._feed.flush()
        self._step()
        pauses = [pause, LOOK]
        if batch_pause is not None:
            pauses.append(batch_pause)
        if self._drain.stage is not Stage.WORKING:
            pauses.append(DRAIN_LOOK)
        return min(pauses)

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
            logger.info("stopping: %s", stage.name.lower())
            if stage is Stage.FINISHING:
                desk.drain()
                self._feed.close()
                desk.release_held(keep=self._shop.running)
            elif stage is Stage.CANCELLING:
                self._shop.cancel_all(CancelReason.STOPPING)
            elif stage is Stage.RELEASING:
                self._release()

    def _release(self) -> None:
        """Gives back what is still held, and says which handlers did not heed their end."""
        released = self._shop.desk.release_held()
        if not self._shop.running:
            return
        logger.error(
            "%d handlers did not stop in time; %d jobs are given back:\n%s",
            len(self._shop.running),
            released,
            stacks_of_runners(),
        )


def stacks_of_runners() -> str:
    """Where the threads that run handlers are right now."""
    frames = sys._current_frames()  # noqa: SLF001  # the documented way to another thread's stack
    parts = []
    for thread in threading.enumerate():
        frame = frames.get(thread.ident or 0)
        is_runner = thread.name.startswith("jobline-runner") or thread is threading.main_thread()
        if is_runner and frame is not None:
            parts.append(f"{thread.name}:\n{''.join(traceback.format_stack(frame))}")
    return "\n".join(parts)
