"""`JobType`: a kind of job with its queue, name, types and options, for producers and workers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from copy import copy
from functools import cached_property, update_wrapper
from typing import Any, Generic, Self, TypeVar, Unpack, cast, overload

from jobline import _codec as codec
from jobline._asynchronous.client import AsyncClient
from jobline._blocking.client import Client
from jobline._handlers import UNSAID, payload_hint, result_hint, wants_context
from jobline._keywords import spelled_out
from jobline._options import NO_OPTIONS, JobOptions, OptionsHow, with_keywords
from jobline._parameters import Parameters, parameters_of
from jobline._push.messages import LotHow, PushHow
from jobline._times import Seconds
from jobline._values import Pushed
from jobline.errors import CodecError, InvalidArgument

P = TypeVar("P")
R = TypeVar("R")
# Of a constructor, which may not use those of its class for what it makes.
Payload = TypeVar("Payload")
Result = TypeVar("Result")


class JobType(Generic[P, R]):
    """A kind of job: where it goes, what it is called, what it takes and gives.

    With `function` it is what a worker runs, and calling it calls the function. Without one it is
    for producers alone: `JobType(queue="images", name="resize", payload=Resize, result=Resized)`.

    - `options`, or the fields of `JobOptions` one by one (`max_attempts=5`), which override them.
      They travel with each push: a worker obeys what a job was pushed with, and its own
      declaration counts for jobs that it pushes itself. If all jobs of a queue should have
      them, whatever pushes them, use `client.queues.update`.
    - `payload`, `result`: the types; default: the function's annotations.

    - `parameters`: those of a function that has several, see `FunctionJob`; None for the others,
      whose payload is one value.

    Raises InvalidArgument for a function that cannot be called for a job.
    """

    @overload
    def __init__(
        self: JobType[Payload, Result],
        *,
        queue: str,
        name: str,
        options: JobOptions | None = None,
        payload: type[Payload],
        result: type[Result],
        function: Callable[..., Any] | None = None,
        **more: Unpack[OptionsHow],
    ) -> None: ...
    @overload
    def __init__(
        self: JobType[Payload, Any],
        *,
        queue: str,
        name: str,
        options: JobOptions | None = None,
        payload: type[Payload],
        result: Any = ...,
        function: Callable[..., Any] | None = None,
        **more: Unpack[OptionsHow],
    ) -> None: ...
    @overload
    def __init__(
        self: JobType[Any, Result],
        *,
        queue: str,
        name: str,
        options: JobOptions | None = None,
        payload: Any = ...,
        result: type[Result],
        function: Callable[..., Any] | None = None,
        **more: Unpack[OptionsHow],
    ) -> None: ...
    @overload
    def __init__(
        self: JobType[Any, Any],
        *,
        queue: str,
        name: str,
        options: JobOptions | None = None,
        payload: Any = ...,
        result: Any = ...,
        function: Callable[..., Any] | None = None,
        **more: Unpack[OptionsHow],
    ) -> None: ...
    @spelled_out(OptionsHow)
    def __init__(
        self,
        *,
        queue: str,
        name: str,
        options: JobOptions | None = None,
        payload: Any = UNSAID,
        result: Any = UNSAID,
        function: Callable[..., Any] | None = None,
        **more: Unpack[OptionsHow],
    ) -> None:
        self.queue = queue
        self.name = name
        self.function = function
        declared = with_keywords(options, more, "JobType") or NO_OPTIONS
        self.options = declared.replaced(name=name)
        self._payload = payload
        self._result = result
        self._how: PushHow = {}
        self.parameters: Parameters | None = None
        if function is not None:
            if payload is UNSAID:
                self.parameters = parameters_of(function)
            if self.parameters is None:
                wants_context(function)  # refused here, where it is declared
            update_wrapper(self, function)

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        """Calls the function, as if it had not been declared; for tests and for other code."""
        if self.function is None:
            raise InvalidArgument(f"{self!r} has no function: it is declared for producers alone")
        return self.function(*arguments, **more)

    def __repr__(self) -> str:
        return f"<JobType {self.queue}/{self.name}>"

    # ------------------------------------------------------------------ types

    @cached_property
    def payload(self) -> Any:
        """The type of the payload; `Any` if the function has no annotation. That of a function
        with several parameters reads an object as a dict of their values.
        """
        if self._payload is not UNSAID:
            return self._payload
        if self.parameters is not None:
            return self.parameters
        return Any if self.function is None else payload_hint(self.function)

    @cached_property
    def result(self) -> Any:
        """The type of the result; `Any` if the function has no annotation."""
        if self._result is not UNSAID:
            return self._result
        return Any if self.function is None else result_hint(self.function)

    def encode(self, payload: P) -> tuple[bytes, JobOptions]:
        """Returns a payload's bytes, and the options with their content type. The payload of a
        function with several parameters is a mapping of their values. Raises CodecError.
        """
        if self.parameters is not None:
            return self.parameters.encode(payload), self._json_options
        if self.payload is bytes or (self.payload is Any and isinstance(payload, bytes)):
            if not isinstance(payload, (bytes, bytearray, memoryview)):
                raise CodecError(f"{self!r} takes bytes, not {type(payload).__name__}")
            return bytes(payload), self.options
        return codec.encode_json(payload), self._json_options

    @cached_property
    def _json_options(self) -> JobOptions:
        return JobOptions(content_type=codec.JSON).merged(self.options)

    # ------------------------------------------------------------------ pushing

    @spelled_out(PushHow)
    def with_options(self, **how: Unpack[PushHow]) -> Self:
        """Returns the same job with these keywords for each of its pushes; those of a push override
        them. For a job whose parameters have the names of keywords:
        `resize.with_options(priority=9).push(client, path="a.png", priority="high")`.
        """
        changed = copy(self)
        changed._how = {**self._how, **how}  # noqa: SLF001  # its own class
        return changed

    @overload
    def push(self, client: Client, /, payload: P, **how: Unpack[PushHow]) -> Pushed: ...
    @overload
    def push(
        self, client: AsyncClient, /, payload: P, **how: Unpack[PushHow]
    ) -> Coroutine[Any, Any, Pushed]: ...
    @spelled_out(PushHow)
    def push(
        self, client: Client | AsyncClient, /, payload: P, **how: Unpack[PushHow]
    ) -> Pushed | Coroutine[Any, Any, Pushed]:
        """Pushes one job; the keywords, those of `Client.push`, override what was declared."""
        pushed: Pushed | Coroutine[Any, Any, Pushed] = self._push(client, payload, how)
        return pushed

    def _push(self, client: Client | AsyncClient, payload: P, how: PushHow) -> Any:
        data, options = self.encode(payload)
        if self._how:
            how = {**self._how, **how}
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
    @spelled_out(LotHow)
    def push_many(
        self,
        client: Client | AsyncClient,
        payloads: Iterable[P],
        *,
        request_id: str | None = None,
        **how: Unpack[LotHow],
    ) -> list[Pushed] | Coroutine[Any, Any, list[Pushed]]:
        """Pushes many in one call, all or none; the keywords, those of `Client.push_many`, override
        what was declared.
        """
        jobs: list[Any] = list(payloads)
        options = self.options
        # Without a type they may be of several kinds, which the client distinguishes.
        if self.payload is not Any:
            encoded = [self.encode(payload) for payload in jobs]
            jobs = [data for data, _ in encoded]
            options = encoded[0][1] if encoded else options
        if self._how:
            how = cast(LotHow, {**self._how, **how})
        how["options"] = options.merged(how.get("options"))
        return client.push_many(self.queue, jobs, request_id=request_id, **how)

    @overload
    def push_and_wait(
        self, client: Client, /, payload: P, *, timeout: Seconds = 60, **how: Unpack[PushHow]
    ) -> R: ...
    @overload
    def push_and_wait(
        self, client: AsyncClient, /, payload: P, *, timeout: Seconds = 60, **how: Unpack[PushHow]
    ) -> Coroutine[Any, Any, R]: ...
    @spelled_out(PushHow)
    def push_and_wait(
        self,
        client: Client | AsyncClient,
        /,
        payload: P,
        *,
        timeout: Seconds = 60,
        **how: Unpack[PushHow],
    ) -> R | Coroutine[Any, Any, R]:
        """Pushes a job and returns its result as the declared type; see `Client.push_and_wait`."""
        if isinstance(client, AsyncClient):
            return self._push_and_wait(client, payload, timeout, how)
        pushed = self._push(client, payload, how)
        result: R = client.wait_one(pushed.id, timeout=timeout).value(self.result)
        return result

    async def _push_and_wait(
        self, client: AsyncClient, payload: P, timeout: Seconds, how: PushHow
    ) -> R:
        pushed = await self._push(client, payload, how)
        end = await client.wait_one(pushed.id, timeout=timeout)
        result: R = end.value(self.result)
        return result
