"""Flows are cut into parts: each job once, children first, each part one push to one queue."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline.v1 import flow_service_pb2 as pb
from jobline.v1 import job_pb2
from jobline_server.engine.commands import Refused
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.values import AckLevel
from jobline_server.rpc.convert import flows
from jobline_server.rpc.convert.flows import flow_parts
from jobline_server.rpc.convert.options import OptionsTable
from jobline_server.rpc.convert.push import PushReader
from jobline_server.runtime.calls.flows import FlowPart

READER = PushReader(OptionsTable(), lambda: 1_000, payload_bytes_max=1 << 20)


def parts_of(request: pb.PushFlowRequest) -> list[FlowPart]:
    return [part for part in flow_parts(request, READER) if part is not None]


@st.composite
def requests(draw: st.DrawFn) -> pb.PushFlowRequest:
    """A flow without circles: in a hidden order, each job waits for earlier ones."""
    count = draw(st.integers(1, 30))
    order = draw(st.permutations(range(count)))
    jobs = [pb.FlowJob() for _ in range(count)]
    for at, index in enumerate(order):
        job = jobs[index]
        job.queue = draw(st.sampled_from(["a", "b", "c"]))
        job.job.text = str(index)
        if draw(st.booleans()):
            job.job.options.priority = draw(st.integers(0, 2))
        if at:
            job.children.extend(draw(st.lists(st.sampled_from(order[:at]), max_size=4)))
    return pb.PushFlowRequest(jobs=jobs, request_id=draw(st.sampled_from(["", "r"])))


@given(requests(), st.integers(1, 5))
def test_parts_hold_each_job_once_and_children_come_first(
    request: pb.PushFlowRequest, part_jobs: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flows, "PART_JOBS", part_jobs)
        parts = parts_of(request)
    stored: set[int] = set()
    names = {part.command.request_id for part in parts}
    assert len(names) == (len(parts) if request.request_id else 1)
    for part in parts:
        command = part.command
        assert len(part.places) <= part_jobs
        assert command.level is AckLevel.FSYNCED
        payloads = [*command.rows.payloads, *command.payloads]
        assert payloads == [str(place).encode() for place in part.places]
        assert {request.jobs[place].queue for place in part.places} == {command.queue}
        own = part.children or [()] * len(part.places)
        for place, children in zip(part.places, own, strict=True):
            assert list(children) == list(dict.fromkeys(request.jobs[place].children))
            assert stored.issuperset(children)
        # Those that wait for others are rows: each has its own ids.
        assert not part.children or len(command.rows) == len(part.places)
        assert not stored.intersection(part.places)
        stored.update(part.places)
    assert stored == set(range(len(request.jobs)))


@given(requests(), st.data())
def test_any_circle_is_refused(request: pb.PushFlowRequest, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(request.jobs) - 1))
    below = [index]
    for at in below:
        below += [child for child in request.jobs[at].children if child not in below]
    last = data.draw(st.sampled_from(below))
    request.jobs[last].children.append(index)
    with pytest.raises(Refused, match="circle"):
        parts_of(request)


def test_a_part_holds_so_many_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "PART_CHILDREN", 4)
    leaves = [pb.FlowJob(queue="a") for _ in range(6)]
    waiting = [pb.FlowJob(queue="b", children=range(count)) for count in (6, 2, 2, 1)]
    parts = parts_of(pb.PushFlowRequest(jobs=[*leaves, *waiting]))
    assert [list(part.places) for part in parts] == [[*range(6)], [6], [7, 8], [9]]
    assert [part.child_count() for part in parts] == [0, 6, 4, 1]


def test_equal_leaves_are_pushed_as_a_lot() -> None:
    leaves = [pb.FlowJob(queue="a", job=job_pb2.NewJob(text="x")) for _ in range(3)]
    root = pb.FlowJob(queue="a", children=range(3))
    part, _ = parts_of(pb.PushFlowRequest(jobs=[*leaves, root]))
    assert (len(part.command.rows), len(part.command.payloads)) == (0, 3)


def test_jobs_that_nobody_waits_for_are_roots() -> None:
    """Also one without children, which has ties because of it, and beside one of its queue."""
    job = job_pb2.NewJob(text="x")
    jobs = [pb.FlowJob(queue="a", job=job, children=own) for own in ([], [], [0], [0, 2])]
    jobs[3].job.options.group = "g"
    parts = parts_of(pb.PushFlowRequest(jobs=jobs))
    roots: dict[int, Ties] = {}
    for part in parts:
        ties = part.command.rows.ties or [NO_TIES] * len(part.places)
        roots |= zip(part.places, ties, strict=True)
    root = Ties(is_flow_root=True)
    assert [roots[at].is_flow_root for at in range(4)] == [False, True, False, True]
    assert (roots[0], roots[1], roots[3].group) == (NO_TIES, root, "g")


def test_field_of_an_unreadable_job_is_named() -> None:
    job = pb.FlowJob.FromString(b"\x08\x01")
    with pytest.raises(Refused) as refused:
        parts_of(pb.PushFlowRequest(jobs=[pb.FlowJob(queue="a"), job]))
    assert refused.value.field == "jobs[1].queue"
