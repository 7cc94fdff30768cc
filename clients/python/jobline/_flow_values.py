"""Flows: jobs that wait for each other, as they are pushed and as the client returns them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self, Unpack

from jobline import _codec as codec
from jobline import _typed_json as typed_json
from jobline._arguments import member_given, message_of, ordered_given, value_given
from jobline._dependencies import DependencyPolicy, DependencyPolicyName
from jobline._enums import EndReason, JobState
from jobline._keywords import spelled_out
from jobline._leased import LeasedJob
from jobline._new_job import NewJob
from jobline._options import JobOptions, OptionsHow
from jobline._push.messages import fitting, row_of
from jobline._reading import read
from jobline._times import Seconds
from jobline.errors import InvalidArgument
from jobline.v1 import flow_service_pb2, job_pb2


@dataclass(frozen=True, slots=True, init=False, eq=False)
class FlowJob:
    """A job of a flow, with the jobs that it waits for.

    - `queue`, `payload` and the keywords are as for `push`.
    - `children`: the jobs that must complete before it is ready; ≤ 10,000. A `FlowJob` may be a
      child of several.

    - `on_failure`: what its parents do if it does not complete ("fail", "cancel", "ignore", "wait",
      "continue"), instead of their `on_dependency_failure`. Not for the root of a flow.

    What happens to it if a child does not complete is its `on_dependency_failure`.
    """

    queue: str
    job: NewJob
    children: tuple[FlowJob, ...]
    on_failure: DependencyPolicy | None

    @spelled_out(OptionsHow)
    def __init__(  # noqa: PLR0913  # one keyword for each option of a job
        self,
        queue: str,
        payload: Any = b"",
        *,
        children: Iterable[FlowJob] = (),
        on_failure: DependencyPolicyName | None = None,
        options: JobOptions | None = None,
        name: str | None = None,
        delay: Seconds | None = None,
        run_at: datetime | None = None,
        **more: Unpack[OptionsHow],
    ) -> None:
        own = ordered_given("children", children)
        for child in own:
            value_given("children", child, FlowJob)
        job = NewJob(payload, options=options, name=name, delay=delay, run_at=run_at, **more)
        policy = member_given("on_failure", DependencyPolicy, on_failure)
        fields = {"queue": queue, "job": job, "children": own, "on_failure": policy or None}
        for field_, value in fields.items():
            object.__setattr__(self, field_, value)


@dataclass(frozen=True, slots=True)
class FlowPushed:
    """The ids of a flow: `id` is that of its root, the first one of several; `ids` are those of all
    jobs, the roots first.
    """

    ids: tuple[int, ...]
    _by_job: Mapping[FlowJob, int] = field(repr=False)

    @property
    def id(self) -> int:
        """The id of the root."""
        return self.ids[0]

    def id_of(self, job: FlowJob) -> int:
        """Returns the id of one of its jobs. Raises InvalidArgument for a job of another flow."""
        if job not in self._by_job:
            raise InvalidArgument("this job does not belong to the flow")
        return self._by_job[job]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowNode:
    """A job of a flow, as it was when this was read.

    - `state`: how it ended, also if it is STALE by now; UNSPECIFIED: it is not kept any more.
    - `children`: ids of the jobs that it waits for, or has waited for.
    - `result`: what it returned, if results were asked for and there was room; else b"", and
      `result_bytes` says how large it is.
    """

    id: int
    queue: str
    name: str
    state: JobState
    reason: EndReason
    children: tuple[int, ...]
    result: bytes
    result_bytes: int

    def result_value(self, kind: Any = Any) -> Any:
        """Returns the result as a type (default: JSON); None without one. Raises CodecError."""
        return typed_json.decode_as(kind, self.result, codec.JSON) if self.result else None

    @classmethod
    def from_message(cls, message: flow_service_pb2.FlowNode) -> Self:
        """Returns the value of the protocol's message."""
        return read(cls, message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A flow, as it was when this was read: the job that was asked for, its children, and so on.

    `is_cut`: more jobs belong to it than were asked for.
    """

    jobs: tuple[FlowNode, ...]
    is_cut: bool

    @property
    def root(self) -> FlowNode:
        """The job that was asked for."""
        return self.jobs[0]

    @classmethod
    def from_message(cls, message: flow_service_pb2.GetFlowResponse) -> Self:
        """Returns the value of the protocol's message."""
        return read(cls, message)


def jobs_of(*roots: FlowJob, field: str = "root") -> dict[FlowJob, int]:
    """Returns the jobs of a flow with their places: the roots first, then their children, and so
    on; each once. `field`: what the caller gave the roots as.
    """
    places: dict[FlowJob, int] = {}
    for root in roots:
        places.setdefault(value_given(field, root, FlowJob), len(places))
    waiting = deque(places)
    while waiting:
        for child in waiting.popleft().children:
            if child not in places:
                places[child] = len(places)
                waiting.append(child)
    return places


def push_request(
    places: Mapping[FlowJob, int], request_id: str, parent: LeasedJob | None = None
) -> flow_service_pb2.PushFlowRequest:
    """Returns the request for a new flow, below a job that a worker has if there is a `parent`.
    Raises InvalidArgument for what it cannot hold.
    """
    request = message_of(flow_service_pb2.PushFlowRequest, request_id=request_id)
    if parent is not None:
        request.parent.id, request.parent.delivery = parent.id, parent.delivery
    for job in places:
        payload, content_type = codec.encode(job.job.payload)
        with fitting():
            row = row_of(job.job, payload, is_json=bool(content_type))
            children = [places[child] for child in job.children]
            policy = job_pb2.DependencyPolicy.ValueType(job.on_failure or 0)
            request.jobs.add(queue=job.queue, job=row, children=children, on_failure=policy)
    return request
