"""Jobs declared once: a typed function with its queue, name and options.

    @job(queue="images", name="resize", max_attempts=5)
    async def resize(request: Resize, context: Context) -> Resized: ...

    @job(queue="images")
    async def crop(path: str, width: int = 100) -> Resized: ...

Producers push it with its types, workers run it, and both read its options from one place.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from jobline._function_job import FunctionJob
from jobline._handlers import UNSAID, refuse_bare
from jobline._job_type import JobType
from jobline._keywords import spelled_out
from jobline._options import JobOptions, OptionsHow, with_keywords
from jobline._parameters import parameters_of

if TYPE_CHECKING:
    from jobline._context import Context

A = TypeVar("A")
B = TypeVar("B")
P = TypeVar("P")
R = TypeVar("R")


class _Declaration:
    """What `job(…)` returns: takes the function. Its overloads are the shapes that a handler may
    have: one payload, perhaps with the context; then anything else, which takes values by name.
    """

    def __init__(
        self, queue: str, name: str | None, options: JobOptions | None, payload: Any, result: Any
    ) -> None:
        self._queue = queue
        self._name = name
        self._options = options
        self._payload = payload
        self._result = result

    # The first one that fits is taken, so that the later ones need not exclude what is before them.
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[[P, Context], Coroutine[Any, Any, R]]
    ) -> JobType[P, R]: ...
    @overload
    def __call__(self, function: Callable[[P, Context], R]) -> JobType[P, R]: ...
    @overload
    def __call__(self, function: Callable[[A, B], Coroutine[Any, Any, R]]) -> FunctionJob[R]: ...
    @overload
    def __call__(self, function: Callable[[A, B], R]) -> FunctionJob[R]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[[P], Coroutine[Any, Any, R]]
    ) -> JobType[P, R]: ...
    @overload
    def __call__(self, function: Callable[[P], R]) -> JobType[P, R]: ...
    @overload
    def __call__(self, function: Callable[..., Coroutine[Any, Any, R]]) -> FunctionJob[R]: ...
    @overload
    def __call__(self, function: Callable[..., R]) -> FunctionJob[R]: ...
    def __call__(self, function: Callable[..., Any]) -> JobType[Any, Any]:
        """Declares a function as a job."""
        has_several = self._payload is UNSAID and parameters_of(function) is not None
        kind: type[JobType[Any, Any]] = FunctionJob if has_several else JobType
        return kind(
            queue=self._queue,
            name=self._name if self._name is not None else function.__name__,
            options=self._options,
            payload=self._payload,
            result=self._result,
            function=function,
        )


@spelled_out(OptionsHow)
def job(
    queue: str,
    *,
    name: str | None = None,
    options: JobOptions | None = None,
    payload: Any = UNSAID,
    result: Any = UNSAID,
    **more: Unpack[OptionsHow],
) -> _Declaration:
    """Declares the function below it as a job, async or plain (run in a thread).

    It is `handler(payload)` or `handler(payload, context)`; or it has a parameter for each value of
    the job, and perhaps the context among them: `resize(path: str, width: int = 100)`. See
    `FunctionJob`. The context is known by its annotation, or as `context` or `ctx`.

    - `name`: the function's, if not given.
    - `options`, or the fields of `JobOptions` one by one (`max_attempts=5`), which override them:
      what this declaration's pushes carry; see `JobType`.
    - `payload`, `result`: the types, if the function's annotations lack them.

    Payloads and results of these types travel as JSON, `bytes` as they are. Raises InvalidArgument
    for a function that cannot be called so, for example with `*values`.
    """
    refuse_bare(queue, "@job")
    return _Declaration(queue, name, with_keywords(options, more, "job"), payload, result)
