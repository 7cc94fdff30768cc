"""Runners for plain handlers: threads that empty one backlog."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue

from jobline.leased import LeasedJob
from jobline.worker.middleware import wrapped_plain
from jobline.worker.routes import Route
from jobline.worker.running import Shop, Work


class ThreadRunners:
    """Daemon threads: one that does not heed the end of the worker does not hold up the end of the
    process.
    """

    def __init__(self, shop: Shop, threads: int) -> None:
        self._shop = shop
        self._backlog: SimpleQueue[Work | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name=f"jobline-runner-{number}", daemon=True)
            for number in range(threads)
        ]

    def start(self) -> None:
        """Starts the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends the threads, each after the handler that it runs."""
        for _ in self._threads:
            self._backlog.put(None)

    def put(self, work: Iterable[Work]) -> None:
        """Takes work, on any thread."""
        for entry in work:
            self._backlog.put(entry)

    def clear(self) -> None:
        """Forgets what has not started; the session knows what is held."""
        with suppress(Empty):
            while True:
                self._backlog.get_nowait()

    def _run(self) -> None:
        while (work := self._backlog.get()) is not None:
            route, job = work
            if isinstance(job, list):
                self._run_batch(route, job)
            else:
                self._run_job(route, job)

    def _run_job(self, route: Route, job: LeasedJob) -> None:
        shop = self._shop
        context = shop.start(job)
        if context is None:
            return
        try:
            payload = route.decode(job)
            arguments = (payload, context) if route.wants_context else (payload,)
            if shop.middleware:
                call = partial(route.function, *arguments)
                value = wrapped_plain(shop.middleware, context, call)
            else:
                value = route.function(*arguments)
        except BaseException as error:  # noqa: BLE001  # SystemExit too: it ends a job, not the worker
            shop.settle_error(context, error)
        else:
            shop.settle(context, value)
        finally:
            shop.end(context)

    def _run_batch(self, route: Route, jobs: list[LeasedJob]) -> None:
        shop = self._shop
        items = shop.start_batch(route, jobs)
        if not items:
            return
        try:
            said = route.function(items)
        except BaseException as error:  # noqa: BLE001  # as above, for each job of the batch
            for item in items:
                shop.settle_error(item.context, error)
        else:
            shop.settle_batch(items, said)
        finally:
            for item in items:
                shop.end(item.context)
