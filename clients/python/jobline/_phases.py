"""The phases of a job: where each stands, and what a handler does with them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Any

from jobline import _codec as codec
from jobline import _typed_json as typed_json
from jobline._values import JobError
from jobline.errors import InvalidArgument

RESULTS_BYTES_MAX = 1 << 20


class PhaseState(IntEnum):
    """Where a phase stands. `UNSPECIFIED` is one that this client does not know."""

    UNSPECIFIED = 0
    PENDING = 1
    ACTIVE = 2
    COMPLETED = 3
    FAILED = 4


@dataclass(frozen=True, slots=True)
class Phase:
    """One step of a job, as operators see it.

    - `name`, `state`; `progress` (0 … 100) and `message`: what the worker last reported in it.
    - `result`: what it returned; b"" in lists. `error`: why it failed, while it is FAILED.
    - `started_at`, `ended_at`, `attempt`: when it was run and by which attempt, once it is
      finished.
    """

    name: str
    state: PhaseState
    progress: float
    message: str
    result: bytes
    error: JobError | None
    started_at: datetime | None
    ended_at: datetime | None
    attempt: int

    def result_value(self, kind: Any = Any) -> Any:
        """Returns the result as a type (default: JSON); None without one. Raises CodecError."""
        return typed_json.decode_as(kind, self.result, codec.JSON) if self.result else None


class Phases:
    """The phases of the job that a handler runs: `context.phases`. Finish them in order.

    `finished`: results by name, as bytes, of the phases that are finished, by earlier attempts too.
    """

    __slots__ = ("_finish", "finished", "names")

    def __init__(
        self,
        names: tuple[str, ...],
        results: tuple[bytes, ...],
        finish: Callable[[str, bytes], object],
    ) -> None:
        self.names = names
        self.finished: dict[str, bytes] = dict(zip(names, results, strict=False))
        self._finish = finish

    @property
    def current(self) -> str:
        """The first phase that is not finished; "" once all are."""
        return self.names[len(self.finished)] if len(self.finished) < len(self.names) else ""

    def __contains__(self, name: object) -> bool:
        """Returns whether a phase is finished."""
        return name in self.finished

    def finish(self, name: str, result: Any = None) -> None:
        """Finishes the current phase, with bytes or a JSON value as its result, ≤ 1 MiB for all
        phases of the job.

        Returns at once; it is sent with the next frame, always before the job's outcome. Raises
        InvalidArgument for another phase than the current one, and CodecError.
        """
        self._refuse_other(name)
        data = b"" if result is None else codec.encode(result)[0]
        size = sum(map(len, self.finished.values())) + len(data)
        if size > RESULTS_BYTES_MAX:
            raise InvalidArgument(f"results of phases are at most 1 MiB together, not {size} bytes")
        self.finished[name] = data
        self._finish(name, data)

    def result(self, name: str, kind: Any = Any) -> Any:
        """Returns the result of a finished phase as a type (default: JSON); None without one.
        Raises InvalidArgument if it is not finished, and CodecError.
        """
        if name not in self.finished:
            raise InvalidArgument(f"phase {name!r} is not finished")
        data = self.finished[name]
        return typed_json.decode_as(kind, data, codec.JSON) if data else None

    def run(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Runs a phase unless it is finished, and returns its result, from this attempt or an
        earlier one: `rows = phases.run("parse", parse, payload)`. To be awaited if `function` is
        async. Raises InvalidArgument for another phase than the current one, or for an async
        function in a plain handler.
        """
        if inspect.iscoroutinefunction(function):
            _refuse_in_plain_handler(name, function)
            return self._run_async(name, function, *arguments)
        if name not in self.finished:
            self._refuse_other(name)
            self.finish(name, function(*arguments))
        return self.result(name)

    async def _run_async(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        if name not in self.finished:
            self._refuse_other(name)
            self.finish(name, await function(*arguments))
        return self.result(name)

    def _refuse_other(self, name: str) -> None:
        """Refuses a phase that is not the current one, before it is run."""
        if name == self.current and name:
            return
        if name not in self.names:
            names = ", ".join(map(repr, self.names)) or "none"
            raise InvalidArgument(f"the job has no phase {name!r}: those of its push are {names}")
        expected = f"the current one is {self.current!r}" if self.current else "all are finished"
        raise InvalidArgument(f"phase {name!r} cannot be finished now: {expected}")


def _refuse_in_plain_handler(name: str, function: Callable[..., Any]) -> None:
    """Refuses an async function where nothing can await it: the handler would go on without it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        called = getattr(function, "__qualname__", repr(function))
        raise InvalidArgument(
            f"phase {name!r}: {called} is async, which a plain handler cannot await: "
            "make the handler async too, and await phases.run(…)"
        ) from None
