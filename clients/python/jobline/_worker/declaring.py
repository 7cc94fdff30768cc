"""The handlers of a worker, as a program declares them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from jobline._arguments import number_given, span_given
from jobline._entity import Entity
from jobline._forks import NeverPickled
from jobline._handlers import UNSAID, refuse_bare
from jobline._hints import name_of
from jobline._job_type import JobType
from jobline._times import Seconds
from jobline._worker.entities import ActiveEntities
from jobline._worker.processes.pickling import refuse_unpicklable
from jobline._worker.routes import Handler, Route, Routes, route_of, route_of_type
from jobline._worker.settings import Settings
from jobline.errors import InvalidArgument

F = TypeVar("F", bound=Callable[..., Any])


class Declaring(NeverPickled):
    """What `Worker` has for handlers."""

    def __init__(self, settings: Settings, weights: dict[str, int]) -> None:
        self._settings = settings
        self._weights = weights
        self._routes = Routes()
        self._entities: list[ActiveEntities] = []
        self._has_served = False

    def add(self, job_type: JobType[Any, Any], function: Handler | None = None) -> None:
        """Runs a declared job; `function` in place of the declared one, if given.

        Raises InvalidArgument if there is no function, if its queue and name have a handler
        already, or once the worker has started.
        """
        self._add(route_of_type(job_type, function))

    def handler(self, queue: str, name: str = "", *, payload: Any = UNSAID) -> Callable[[F], F]:
        """Makes the function below it the handler of a kind of work: `handler(payload)`,
        `handler(payload, context)`, or with several parameters as for `job`; async or plain.

        `name`: default "", jobs without one; `ANY` takes every name of the queue that no other
        handler takes. `payload`: the type to read payloads as; default: the annotation of the
        first argument, and without one JSON if the content type is JSON, else bytes. Attempts,
        backoff and lease are not set here: options are part of the push.

        Raises InvalidArgument as `add` does, for a function that cannot be called so, and for a
        queue that is not among the worker's `queues`.
        """
        refuse_bare(queue, "@worker.handler")

        def declare(function: F) -> F:
            self._add(route_of(queue, name, function, payload=payload))
            return function

        return declare

    def batch_handler(
        self,
        queue: str,
        name: str = "",
        *,
        size: int = 100,
        wait: Seconds = 0.05,
        payload: Any = UNSAID,
    ) -> Callable[[F], F]:
        """Makes the function below it the handler of many jobs at a time: `handler(items)`.

        It gets up to `size` `BatchItem`s (default 100), at the latest `wait` seconds after the
        first (default 0.05), and returns a sequence, one answer for each in their order, or a
        mapping by id: its result (None is one), an exception, or an outcome. A job without
        an answer fails, and all fail if a sequence has another length. What it raises fails all.
        Payloads are read as `handler` reads them; the annotation is that of the items, such as
        `list[BatchItem[int]]`.
        """
        refuse_bare(queue, "@worker.batch_handler")
        number_given("size", size, minimum=1)
        span_given("wait", wait)

        def declare(function: F) -> F:
            self._add(route_of(queue, name, function, payload=payload, size=size, wait=wait))
            return function

        return declare

    def add_entity(
        self, entity: type[Entity], *, max_active: int = 1_000, idle_after: Seconds = 300
    ) -> None:
        """Runs the methods of a class made from `Entity`: one job at a time for each key.

        `max_active`: objects to keep in memory, those that run jobs beside them (default 1,000);
        the least recently used goes first. `idle_after`: seconds without a job after which one is
        let go of (300). Raises InvalidArgument as `add` does.
        """
        most = number_given("max_active", max_active, minimum=1)
        active = ActiveEntities(
            entity, max_active=most, idle_after=span_given("idle_after", idle_after)
        )
        for route in active.routes():
            self._add(route)
        self._entities.append(active)

    def _add(self, route: Route) -> None:
        if self._has_served:
            raise InvalidArgument("handlers are added before the worker starts")
        if self._weights and route.queue not in self._weights:
            raise InvalidArgument(
                f"a handler for the queue {route.queue!r} would get nothing: this worker takes "
                f"from {', '.join(self._weights)} alone; add {route.queue!r} to its queues="
            )
        if self._settings.processes and not route.is_async:
            refuse_unpicklable(route.make, f"the handler {name_of(route.function)}")
        self._routes.add(route)
