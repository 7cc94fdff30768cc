"""Converts flows: cuts the jobs of one into parts, each a push to one queue, and writes what a look
at one has found.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from google.protobuf.message import Message

from jobline.v1 import flow_service_pb2 as pb
from jobline.v1 import job_pb2, job_service_pb2
from jobline_server.engine import limits
from jobline_server.engine.commands import Push, Refused
from jobline_server.engine.decide.add_children import FlowParent
from jobline_server.engine.rules import DependencyPolicy
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.rpc import limits as rpc_limits
from jobline_server.rpc.convert.digests import digest_with
from jobline_server.rpc.convert.push import PushReader
from jobline_server.rpc.convert.ties import make_rows
from jobline_server.rpc.validate import fields
from jobline_server.rpc.validate.mistyped import check_own_fields
from jobline_server.runtime.calls.flows import FlowPart, placed, with_request_id
from jobline_server.runtime.queries.flows import FlowNode

# Jobs of a part, and how many others they wait for together, unless one alone waits for more: some
# milliseconds of the loop.
PART_JOBS = 100
PART_CHILDREN = 1_000
PART_BYTES = 2 << 20
# Jobs that are looked at between two moments that are good for a pause.
STEP_JOBS = 100
STEP_BYTES = 1 << 20
# Jobs that a look at a flow returns unless it says otherwise.
LOOK_JOBS_DEFAULT = 1_000

# Fields of a job that a flow has no use for, or that it says in another way.
_NOT_OF_JOBS = {
    "job_key": "a flow is known by its request_id",
    "depends_on_indexes": "say `children`",
}
_NOT_OF_OPTIONS = {
    "depends_on": "say `children`",
    "unique_key": "not in a flow",
    "batch_id": "not in a flow",
}

_ROOT = Ties(is_flow_root=True)
_LISTS = frozenset({"depends_on_indexes", "depends_on"})


def parent_of(request: pb.PushFlowRequest) -> FlowParent | None:
    """Returns the lease of the job that is to wait for a flow; None if there is none."""
    if not request.HasField("parent"):
        return None
    parent = request.parent
    try:
        check_own_fields(parent)
    except Refused as refused:
        raise fields.within("parent", refused) from None
    for name, value in (("id", parent.id), ("delivery", parent.delivery)):
        if not value:
            raise fields.invalid(f"parent.{name}", "is required")
    return FlowParent(parent.id, parent.delivery)


def flow_parts(request: pb.PushFlowRequest, reader: PushReader) -> Iterator[FlowPart | None]:
    """Yields the parts of a flow, children before their parents, and None where a pause is good.
    Raises `Refused` for what is wrong with it.
    """
    request_id = fields.key(request.request_id, "request_id", limits.REQUEST_ID_BYTES_MAX)
    fields.non_empty(request.jobs, "jobs")
    fields.at_most(request.jobs, "jobs", rpc_limits.FLOW_JOBS_MAX)
    jobs, children, sizes = list(request.jobs), [], []
    has_parent = request.HasField("parent")
    # The same flow below another job is another request.
    digest = digest_with(0, request.parent) if has_parent else 0
    pending = 0
    for index, job in enumerate(jobs):
        if index % STEP_JOBS == 0 or pending > STEP_BYTES:
            yield None
            pending = 0
        _check_job(index, job)
        children.append(_children_of(index, job, len(jobs)))
        sizes.append(len(job.job.data) or len(job.job.text.encode()))
        pending += sizes[-1]
        if request_id:
            digest = digest_with(digest, job)
    if sum(sizes) > rpc_limits.PUSH_BYTES_MAX:
        raise fields.too_large(
            "jobs", f"at most {rpc_limits.PUSH_BYTES_MAX} bytes of payloads in one flow"
        )
    if sum(map(len, children)) > rpc_limits.FLOW_CHILDREN_MAX:
        why = f"at most {rpc_limits.FLOW_CHILDREN_MAX} children together"
        raise fields.too_large("jobs", why)
    yield None
    heights = _heights_of(children)
    yield None
    awaited = {child for own in children for child in own}
    has_policies = _check_policies(jobs, range(len(jobs)) if has_parent else awaited)
    for number, places in enumerate(_places(jobs, heights, children, sizes, awaited)):
        part = _part_of(jobs, places, children, reader)
        if places[0] not in awaited and not has_parent:
            _mark_roots(part.command)
        if has_policies:
            about = bytes([jobs[at].on_failure for at in places])
            part = part._replace(on_failure=_policies_of(jobs, part), about=about)
        if request_id:
            part = with_request_id(part, request_id, number, digest)
        yield part


def _children_of(index: int, job: pb.FlowJob, count: int) -> tuple[int, ...]:
    """Returns the children of a job, each once."""
    field = f"jobs[{index}].children"
    fields.at_most(job.children, field, rpc_limits.FLOW_JOB_CHILDREN_MAX)
    own = tuple(dict.fromkeys(job.children))
    if own and max(own) >= count:
        raise fields.invalid(field, "must be indexes of `jobs`")
    return own


def _check_job(index: int, job: pb.FlowJob) -> None:
    """Refuses what cannot be read, and what has no meaning in a flow."""
    try:
        check_own_fields(job)
    except Refused as refused:
        raise fields.within(f"jobs[{index}]", refused) from None
    _check_unset(job.job, _NOT_OF_JOBS, f"jobs[{index}].job")
    if job.job.HasField("options"):
        _check_unset(job.job.options, _NOT_OF_OPTIONS, f"jobs[{index}].job.options")


def _check_unset(message: Message, names: Mapping[str, str], place: str) -> None:
    for name, why in names.items():
        value = getattr(message, name)
        if value:
            if name in _LISTS:
                fields.at_most(value, f"{place}.{name}", limits.PARENTS_MAX)
            raise fields.invalid(f"{place}.{name}", why)


def _heights_of(children: Sequence[tuple[int, ...]]) -> list[int]:
    """Returns how many jobs wait for each other in a row below each job: 0 for one without
    children. Refuses a cycle, and rows that are too long.
    """
    heights, left = [0] * len(children), list(map(len, children))
    parents: dict[int, list[int]] = {}
    for parent, own in enumerate(children):
        for child in own:
            parents.setdefault(child, []).append(parent)
    done = deque([at for at, count in enumerate(left) if not count])
    reached = 0
    while done:
        child = done.popleft()
        reached += 1
        for parent in parents.get(child, ()):
            heights[parent] = max(heights[parent], heights[child] + 1)
            left[parent] -= 1
            if not left[parent]:
                done.append(parent)
    if reached < len(children):
        at = next(at for at, count in enumerate(left) if count)
        raise fields.invalid(f"jobs[{at}].children", "these jobs wait for each other in a circle")
    if max(heights) >= rpc_limits.FLOW_DEPTH_MAX:
        at = heights.index(rpc_limits.FLOW_DEPTH_MAX)
        why = f"at most {rpc_limits.FLOW_DEPTH_MAX} jobs may wait for each other in a row"
        raise fields.invalid(f"jobs[{at}].children", why)
    return heights


def _places(
    jobs: Sequence[pb.FlowJob],
    heights: Sequence[int],
    children: Sequence[tuple[int, ...]],
    sizes: Sequence[int],
    awaited: Collection[int],
) -> Iterator[list[int]]:
    """Yields the indexes of the jobs of each part: of one height and queue, the lowest first, and
    all of them roots or none. A repeat of the call has the same parts.
    """
    together: dict[tuple[int, str, bool], list[int]] = {}
    for index, job in enumerate(jobs):
        kind = heights[index], job.queue, index in awaited
        together.setdefault(kind, []).append(index)
    # In the order of the jobs where the heights are the same.
    for _, places in sorted(together.items(), key=lambda item: item[0][0]):
        part: list[int] = []
        waits_for = held = 0
        for index in places:
            own, size = len(children[index]), sizes[index]
            is_full = waits_for + own > PART_CHILDREN or held + size > PART_BYTES
            if part and (len(part) == PART_JOBS or is_full):
                yield part
                part, waits_for, held = [], 0, 0
            part.append(index)
            waits_for += own
            held += size
        yield part


def _part_of(
    jobs: Sequence[pb.FlowJob],
    places: Sequence[int],
    children: Sequence[tuple[int, ...]],
    reader: PushReader,
) -> FlowPart:
    """Returns a part: its jobs are read and checked as those of any push."""
    own = [children[at] for at in places] if children[places[0]] else []
    request = job_service_pb2.PushRequest(
        queue=jobs[places[0]].queue, ack_level=job_pb2.ACK_LEVEL_FSYNCED
    )
    for at in places:
        job = request.jobs.add()
        job.CopyFrom(jobs[at].job)
        if own:
            # Stands for the ids that its children get: it will wait for others.
            job.options.depends_on.append(1)
    try:
        command = reader.command(request)
    except Refused as refused:
        raise placed(refused, places) from None
    return FlowPart(command, places, own)


def _check_policies(jobs: Sequence[pb.FlowJob], awaited: Collection[int]) -> bool:
    """Checks what parents do if a child fails; returns whether any child says so."""
    given = [index for index, job in enumerate(jobs) if job.on_failure]
    for index in given:
        field = f"jobs[{index}].on_failure"
        fields.enum_member(jobs[index].on_failure, field, DependencyPolicy)
        if index not in awaited:
            raise fields.invalid(field, "no job of the flow waits for this one")
    return bool(given)


def _policies_of(jobs: Sequence[pb.FlowJob], part: FlowPart) -> list[bytes]:
    """Returns the policies of the jobs of a part about their children, as in `Ties`."""
    policies = [bytes([jobs[at].on_failure for at in own]) for own in part.children]
    return policies if any(map(any, policies)) else []


def _mark_roots(command: Push) -> None:
    """Marks the jobs of a part as roots of a flow, which makes rows of them."""
    if len(command.payloads):
        make_rows(command, [_ROOT] * len(command.payloads))
        return
    ties = command.rows.ties or [NO_TIES] * len(command.rows)
    command.rows.ties = [replace(own, is_flow_root=True) for own in ties]


def look_limits(request: pb.GetFlowRequest) -> tuple[int, int]:
    """Returns how many jobs a look at a flow returns at most, and how far it goes."""
    if not request.id:
        raise fields.invalid("id", "is required")
    jobs = fields.integer(
        request.max_jobs or LOOK_JOBS_DEFAULT, "max_jobs", 1, rpc_limits.FLOW_JOBS_MAX
    )
    depth = rpc_limits.FLOW_JOBS_MAX
    if request.HasField("max_depth"):
        depth = fields.integer(request.max_depth, "max_depth", 0, rpc_limits.FLOW_DEPTH_MAX)
    return jobs, depth


def fill_node(message: pb.FlowNode, node: FlowNode) -> None:
    """Fills the message of a job of a flow."""
    message.id = node.id
    message.queue = node.queue
    message.name = node.name
    if node.state is not None:
        message.state = job_pb2.JobState.ValueType(node.state)
    message.reason = job_pb2.EndReason.ValueType(node.reason)
    message.children.extend(node.children)
    message.result = node.result
    message.result_bytes = node.result_bytes
