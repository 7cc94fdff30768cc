"""Jobs declared once: a typed function, or a pair of types, with its queue, name and options.

    @job(queue="images", name="resize", options=JobOptions(max_attempts=5))
    async def resize(request: Resize, context: Context) -> Resized: ...

Producers push it with its type, workers run it, and both read its options from one place.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable
from functools import cached_property, update_wrapper
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, get_type_hints, overload

from jobline import codec
from jobline.asynchronous.client import AsyncClient
from jobline.blocking.client import Client
from jobline.errors import CodecError, InvalidArgument
from jobline.options import NO_OPTIONS, JobOptions, OptionsHow
from jobline.pushing import LotHow, PushHow
from jobline.times import Seconds
from jobline.values import Pushed

if TYPE_CHECKING:
    from jobline.context import Context

P = TypeVar("P")
R = TypeVar("R")

_UNSAID: Any = object()


class JobType(Generic[P, R]):
    """A kind of job: where it goes, what it is called, what it takes and gives.

    With `function` it is what a worker runs, and calling it calls the function. Without one it is
    for producers alone: `JobType(queue="images", name="resize", payload=Resize, result=Resized)`.
    """

    def __init__(
        self,
        *,
        queue: str,
        name: str,
        options: JobOptions | None = None,
        payload: Any = _UNSAID,
        result: Any = _UNSAID,
        function: Callable[..., Any] | None = None,
    ) -> None:
        self.queue = queue
        self.name = name
        self.function = function
        self.options = (options or NO_OPTIONS).replaced(name=name)
        self._payload = payload
        self._result = result
        if function is not None:
            update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        """Calls the function, as if it had not been declared; for tests and for other code."""
        if self.function is None:
            raise InvalidArgument(f"{self!r} has no function: it is declared for producers alone")
        return self.function(*arguments)

    def __repr__(self) -> str:
        return f"<JobType {self.queue}/{self.name}>"

    # ------------------------------------------------------------------ types

    @cached_property
    def payload(self) -> Any:
        """The type of the payload; `Any` where the function does not say."""
        if self._payload is not _UNSAID:
            return self._payload
        names = [] if self.function is None else list(inspect.signature(self.function).parameters)
        return self._hints.get(names[0], Any) if names else Any

    @cached_property
    def result(self) -> Any:
        """The type of the result; `Any` where the function does not say."""
        return self._result if self._result is not _UNSAID else self._hints.get("return", Any)

    @cached_property
    def _hints(self) -> dict[str, Any]:
        if self.function is None:
            return {}
        try:
            return get_type_hints(self.function, include_extras=True)
        except NameError as error:
            raise InvalidArgument(
                f"the types of {self!r} cannot be looked up ({error}): declare them at the top of "
                "a module, or give payload= and result="
            ) from error

    def encode(self, payload: P) -> tuple[bytes, JobOptions]:
        """A payload's bytes, and the options that say what they are. Raises CodecError."""
        if self.payload is bytes or (self.payload is Any and isinstance(payload, bytes)):
            if not isinstance(payload, (bytes, bytearray, memoryview)):
                raise CodecError(f"{self!r} takes bytes, not {type(payload).__name__}")
            return bytes(payload), self.options
        return codec.encode_json(payload), self._json_options

    @cached_property
    def _json_options(self) -> JobOptions:
        return JobOptions(content_type=codec.JSON).merged(self.options)

    # ------------------------------------------------------------------ pushing

    @overload
    def push(self, client: Client, payload: P, **how: Unpack[PushHow]) -> Pushed: ...
    @overload
    def push(
        self, client: AsyncClient, payload: P, **how: Unpack[PushHow]
    ) -> Coroutine[Any, Any, Pushed]: ...
    def push(
        self, client: Client | AsyncClient, payload: P, **how: Unpack[PushHow]
    ) -> Pushed | Coroutine[Any, Any, Pushed]:
        """Pushes one; the keywords override what was declared. See `Client.push`."""
        data, options = self.encode(payload)
        how["options"] = options.merged(how.get("options"))
        return client.push(self.queue, data, **how)

    @overload
    def push_many(
        self,
        client: Client,
        payloads: Iterable[P],
        *,
        request_id: str | None = None,
        **how: Unpack[LotHow],
    ) -> list[Pushed]: ...
    @overload
    def push_many(
        self,
        client: AsyncClient,
        payloads: Iterable[P],
        *,
        request_id: str | None = None,
        **how: Unpack[LotHow],
    ) -> Coroutine[Any, Any, list[Pushed]]: ...
    def push_many(
        self,
        client: Client | AsyncClient,
        payloads: Iterable[P],
        *,
        request_id: str | None = None,
        **how: Unpack[LotHow],
    ) -> list[Pushed] | Coroutine[Any, Any, list[Pushed]]:
        """Pushes many in one call, all or none. See `Client.push_many`."""
        jobs: list[Any] = list(payloads)
        options = self.options
        if (
            self.payload is not Any
        ):  # else they may be of several kinds, which the client tells apart
            encoded = [self.encode(payload) for payload in jobs]
            jobs = [data for data, _ in encoded]
            options = encoded[0][1] if encoded else options
        how["options"] = options.merged(how.get("options"))
        return client.push_many(self.queue, jobs, request_id=request_id, **how)

    @overload
    def push_and_wait(
        self, client: Client, payload: P, *, timeout: Seconds = 60, **how: Unpack[PushHow]
    ) -> R: ...
    @overload
    def push_and_wait(
        self, client: AsyncClient, payload: P, *, timeout: Seconds = 60, **how: Unpack[PushHow]
    ) -> Coroutine[Any, Any, R]: ...
    def push_and_wait(
        self,
        client: Client | AsyncClient,
        payload: P,
        *,
        timeout: Seconds = 60,
        **how: Unpack[PushHow],
    ) -> R | Coroutine[Any, Any, R]:
        """Pushes one and returns its result, as the declared type. See `Client.push_and_wait`."""
        if isinstance(client, AsyncClient):
            return self._push_and_wait(client, payload, timeout, how)
        pushed = self.push(client, payload, **how)
        result: R = client.wait_one(pushed.id, timeout=timeout).value(self.result)
        return result

    async def _push_and_wait(
        self, client: AsyncClient, payload: P, timeout: Seconds, how: PushHow
    ) -> R:
        pushed = await self.push(client, payload, **how)
        end = await client.wait_one(pushed.id, timeout=timeout)
        result: R = end.value(self.result)
        return result


class _Declaration:
    """What `job(…)` returns: takes the function. The four shapes a handler may have are
    overloads.
    """

    def __init__(
        self, queue: str, name: str | None, options: JobOptions | None, payload: Any, result: Any
    ) -> None:
        self._queue = queue
        self._name = name
        self._options = options
        self._payload = payload
        self._result = result

    @overload
    def __call__(self, function: Callable[[P], Coroutine[Any, Any, R]]) -> JobType[P, R]: ...
    @overload
    def __call__(
        self, function: Callable[[P, Context], Coroutine[Any, Any, R]]
    ) -> JobType[P, R]: ...
    @overload
    def __call__(self, function: Callable[[P], R]) -> JobType[P, R]: ...
    @overload
    def __call__(self, function: Callable[[P, Context], R]) -> JobType[P, R]: ...
    def __call__(self, function: Callable[..., Any]) -> JobType[Any, Any]:
        """Declares a function as a job."""
        return JobType(
            queue=self._queue,
            name=self._name if self._name is not None else function.__name__,
            options=self._options,
            payload=self._payload,
            result=self._result,
            function=function,
        )


def job(
    queue: str,
    *,
    name: str | None = None,
    options: JobOptions | None = None,
    payload: Any = _UNSAID,
    result: Any = _UNSAID,
    **more: Unpack[OptionsHow],
) -> _Declaration:
    """Declares the function below it as a job: `handler(payload)` or `handler(payload, context)`,
    async or plain (run in a thread).

    - `name`: the function's, if not given.
    - `options`, or the fields of `JobOptions` one by one (`max_attempts=5`), which override them.
    - `payload`, `result`: the types, where the function's annotations do not say them.

    Payloads and results of these types travel as JSON, `bytes` as they are.
    """
    declared = (options or NO_OPTIONS).merged(JobOptions(**more)) if more else options
    return _Declaration(queue, name, declared, payload, result)
