"""Which handler takes which job, and how it wants to be called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from jobline import _typed_json as typed_json
from jobline._arguments import TEXT, number_given, refuse
from jobline._handlers import (
    UNSAID,
    items_hint,
    payload_hint,
    refuse_more_than_items,
    result_hint,
    takes_one,
    wants_context,
)
from jobline._job_type import JobType
from jobline._leased import LeasedJob
from jobline._parameters import Parameters, parameters_of
from jobline._schemas import schema_text
from jobline._stream.frames import Announced
from jobline._times import Seconds, seconds_of
from jobline.errors import InvalidArgument, SealError

ANY = "*"
"""As a name: every kind of work of a queue that no other handler takes."""

Handler = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """One handler. A batch handler has a `size` above 0 and takes the items alone."""

    queue: str
    name: str
    function: Handler
    is_async: bool
    wants_context: bool
    payload: Any = Any
    result: Any = Any
    size: int = 0
    wait: float = 0.0
    make: Callable[[], Route] | None = None
    """Makes it again, in another process; None if it belongs to this one."""

    def decode(self, job: LeasedJob) -> Any:
        """Returns the job's payload as the handler's type. Raises CodecError."""
        if isinstance(job.seal, SealError):
            raise job.seal
        return typed_json.decode_as(self.payload, job.payload, job.content_type)


class Routes:
    """All handlers of a worker, by queue and name."""

    def __init__(self) -> None:
        self._by_name: dict[tuple[str, str], Route] = {}

    def __iter__(self) -> Any:
        return iter(self._by_name.values())

    def add(self, route: Route) -> None:
        """Adds a handler; refuses a second one for the same queue and name."""
        key = (route.queue, route.name)
        if key in self._by_name:
            what = f"named {route.name!r}" if route.name else "without a name"
            raise InvalidArgument(f"queue {route.queue!r} has a handler for jobs {what} already")
        self._by_name[key] = route

    def find(self, queue: str, name: str) -> Route | None:
        """Returns the handler of a job: by its name, else the one for any name."""
        return self._by_name.get((queue, name)) or self._by_name.get((queue, ANY))

    def queues(self) -> list[str]:
        """The queues to take from, in the order of their first handler."""
        return list(dict.fromkeys(queue for queue, _ in self._by_name))

    def announced(self) -> list[Announced]:
        """Returns the handlers as the server is told of them, with schemas of their types."""
        return [
            Announced(
                queue=route.queue,
                name="" if route.name == ANY else route.name,
                any_name=route.name == ANY,
                payload_schema=schema_text(route.payload),
                result_schema=schema_text(route.result),
            )
            for route in self._by_name.values()
        ]


def route_of(
    queue: str,
    name: str,
    function: Handler,
    *,
    payload: Any = UNSAID,
    result: Any = UNSAID,
    size: int = 0,
    wait: Seconds = 0,
) -> Route:
    """Returns the route of a function, which is inspected once: async or plain, with or without a
    context, of one payload or of several values, and its types. Raises InvalidArgument for one that
    cannot be called.
    """
    if not isinstance(name, str):
        refuse("name", f"must be {TEXT}, not {name!r}: a type is given as payload=")
    if size < 0 or (size and seconds_of(wait) < 0):
        raise InvalidArgument("a batch handler needs a size of at least 1 and a wait of at least 0")
    if size:
        refuse_more_than_items(function)
    given = payload
    parameters = parameters_of(function) if payload is UNSAID and not size else None
    if isinstance(payload, Parameters):
        parameters = payload
    called = function
    if parameters is not None:
        called, payload, takes_context = parameters.called(function), parameters, True
    else:
        takes_context = not size and wants_context(function)
    if payload is UNSAID:
        payload = items_hint(function) if size else payload_hint(function)
    target = function if inspect.isroutine(function) else type(function).__call__
    again = partial(
        route_of, queue, name, function, payload=given, result=result, size=size, wait=wait
    )
    return Route(
        queue=queue,
        name=name,
        function=called,
        is_async=inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(target),
        wants_context=takes_context,
        payload=payload,
        result=_result_of(function, result, size),
        size=size,
        wait=seconds_of(wait),
        make=again,
    )


def _result_of(function: Handler, result: Any, size: int) -> Any:
    """Returns the type of what a handler returns for a job; only operators and code generators see
    it, so one that cannot be looked up is no mistake.
    """
    if size:
        return Any
    if result is not UNSAID:
        return result
    try:
        return result_hint(function)
    except InvalidArgument:
        return Any


def route_of_type(job_type: JobType[Any, Any], function: Handler | None = None) -> Route:
    """Returns the route of a declared job; `function` runs instead of the declared one."""
    given: object = job_type
    if not isinstance(given, JobType):
        raise InvalidArgument(
            f"a worker runs declared jobs, not {given!r}: declare it with @job, or use "
            "@worker.handler"
        )
    runs = function or job_type.function
    if runs is None:
        raise InvalidArgument(f"{job_type!r} has no function: give add() a handler for it")
    route = route_of(
        job_type.queue,
        job_type.name,
        runs,
        payload=job_type.payload if function is None else _payload_for(job_type, function),
        result=_result_of_type(job_type),
    )
    return replace(route, make=partial(route_of_type, job_type, function))


def _payload_for(job_type: JobType[Any, Any], function: Handler) -> Any:
    """Returns what a function takes that runs in place of the declared one. It may take the values
    of an object one by one, whatever it is to producers.
    """
    if isinstance(job_type.payload, Parameters):
        return UNSAID
    parameters = parameters_of(function)
    if parameters is None or takes_one(function, job_type.payload):
        return job_type.payload
    return parameters


def _result_of_type(job_type: JobType[Any, Any]) -> Any:
    try:
        return job_type.result
    except InvalidArgument:
        return Any


def weights_given(queues: Mapping[str, int] | Sequence[str] | None) -> dict[str, int]:
    """Returns the queues that a worker was configured with, and their weights."""
    if isinstance(queues, str) or not isinstance(queues, Iterable | None):
        raise InvalidArgument(f"queues is a list of names, or weights by name: [{queues!r}]")
    if not isinstance(queues, Mapping):
        return dict.fromkeys(queues or (), 1)
    return {
        queue: number_given(f"queues[{queue!r}]", weight, minimum=1, maximum=1_000)
        for queue, weight in queues.items()
    }


def weights_of(queues: Iterable[str], weights: dict[str, int]) -> list[tuple[str, int]]:
    """Returns queues with their weights, 1 by default. Raises InvalidArgument for a queue that has
    no handler.
    """
    known = list(queues)
    strange = set(weights) - set(known)
    if strange:
        raise InvalidArgument(f"there is no handler for the queues {sorted(strange)}")
    return [(queue, weights.get(queue, 1)) for queue in known]
