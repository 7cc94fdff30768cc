"""For tests of handlers: a context without a server or worker. See docs/testing.md.

context = make_context(name="resize", attempt=2)
assert resize(Resize("a.png", 64), context) == Resized(4096)
assert context.reports[0].progress == 50
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jobline import _codec as codec
from jobline._context import Context
from jobline._enums import AckLevel, EndReason, JobState, LeaseReason, PushOutcome
from jobline._flow_values import FlowNode
from jobline._job_log import LogLevel
from jobline._leased import LeasedJob
from jobline._option_messages import options_message
from jobline._options import JobOptions
from jobline._spawns import push_spawned
from jobline._values import Pushed


@dataclass(frozen=True, slots=True)
class Report:
    """One report of a handler; None for what it left out."""

    progress: float | None
    message: str | None
    checkpoint: bytes | None


@dataclass(frozen=True, slots=True)
class Spawned:
    """A job that a handler has spawned: its queue, its payload in bytes, and the keywords of its
    push, with the `job_key` that it got.
    """

    queue: str
    payload: bytes
    how: dict[str, Any]


class _Recorder:
    """Keeps reports instead of sending them."""

    def __init__(self, children: list[FlowNode]) -> None:
        self._children = children
        self.spawned: list[Spawned] = []
        self.reports: list[Report] = []
        self.logs: list[tuple[LogLevel, str]] = []
        self.partials: list[bytes] = []

    def report(
        self,
        job: LeasedJob,
        *,
        progress: float | None = None,
        message: str | None = None,
        checkpoint: bytes | None = None,
        partial: bytes | None = None,
    ) -> bool:
        """Records a report; the lease is never lost."""
        if partial is not None:
            self.partials.append(partial)
            return True
        self.reports.append(Report(progress, message, checkpoint))
        return True

    def log(self, job: LeasedJob, level: LogLevel, text: str) -> bool:
        """Records a line; the lease is never lost."""
        self.logs.append((level, text))
        return True

    def finish_phase(self, job: LeasedJob, name: str, result: bytes) -> bool:
        """Accepts the end of a phase; `context.phases.finished` has it."""
        return True

    def children(self, job_id: int) -> list[FlowNode]:
        """Returns the children that the test has given."""
        return list(self._children)

    def spawn(
        self, job: Any, values: tuple[Any, ...], own: dict[str, Any], how: dict[str, Any]
    ) -> Pushed:
        """Records a job that the handler pushes, refused as its push would be."""
        pushed: Pushed = push_spawned(_SpawnRecorder(self.spawned), job, values, own, how)
        return pushed

    async def spawn_async(
        self, job: Any, values: tuple[Any, ...], own: dict[str, Any], how: dict[str, Any]
    ) -> Pushed:
        """Records it as `spawn` does."""
        return self.spawn(job, values, own, how)


class _SpawnRecorder:
    """A client that pushes nowhere."""

    def __init__(self, spawned: list[Spawned]) -> None:
        self._spawned = spawned

    def push(self, queue: str, payload: Any = b"", **how: Any) -> Pushed:
        """Records a push; ids count from 1,000,001."""
        self._spawned.append(Spawned(queue, codec.encode(payload)[0], how))
        return Pushed(1_000_000 + len(self._spawned), PushOutcome.CREATED, AckLevel.FSYNCED)


class RecordedContext(Context):
    """A context that keeps what its handler reports, in order: `reports`, `partials` as bytes,
    `spawned`, and `logs` as (level, text). `cancel(reason)` asks the handler to stop, as a worker
    would.
    """

    __slots__ = ("logs", "partials", "reports", "spawned")

    def __init__(self, job: LeasedJob, state: Any, children: Iterable[FlowNode] = ()) -> None:
        recorder = _Recorder(list(children))
        super().__init__(job, recorder, state, recorder)
        self.reports = recorder.reports
        self.logs = recorder.logs
        self.partials = recorder.partials
        self.spawned = recorder.spawned


def make_context(  # noqa: PLR0913  # one keyword for each attribute of a context
    *,
    queue: str = "test",
    name: str = "",
    id: int = 1,  # noqa: A002  # the attribute's name
    delivery: int = 1,
    attempt: int = 1,
    reason: LeaseReason | None = None,
    headers: Mapping[str, str] | None = None,
    job_key: str = "",
    checkpoint: Any = None,
    payload: Any = b"",
    state: Any = None,
    phases: Iterable[str] = (),
    phase_results: Iterable[Any] = (),
    children: Iterable[Any] = (),
) -> RecordedContext:
    """Returns a context as a worker would pass it to a handler.

    `reason`: default FIRST, or RETRY from the second `attempt` on. `checkpoint` and `payload`:
    bytes, or what becomes JSON. `state`: what the worker's lifespan would yield. `phases`: names,
    and `phase_results` of those that earlier attempts have finished: bytes, or what becomes JSON.
    `children`: results of its children, which have completed: bytes, or what becomes JSON.
    """
    data, content_type = codec.encode(payload)
    options = JobOptions(
        name=name, headers=headers, content_type=content_type or None, phases=phases
    )
    job = LeasedJob(
        id,
        delivery,
        queue,
        options_message(options),
        data,
        lease_ms=30_000,
        attempt=attempt,
        reason=reason or (LeaseReason.FIRST if attempt == 1 else LeaseReason.RETRY),
        checkpoint=b"" if checkpoint is None else codec.encode(checkpoint)[0],
        job_key=job_key,
        phase_results=tuple(codec.encode(result)[0] for result in phase_results),
    )
    results = enumerate([codec.encode(result)[0] for result in children], id + 1)
    return RecordedContext(job, state, [_completed(*child) for child in results])


def _completed(child_id: int, result: bytes) -> FlowNode:
    """Returns a child that has completed."""
    return FlowNode(
        id=child_id,
        queue="test",
        name="",
        state=JobState.COMPLETED,
        reason=EndReason.UNSPECIFIED,
        children=(),
        result=result,
        result_bytes=len(result),
    )
