"""`jobline flow` against a real server."""

from __future__ import annotations

import re

from jobline import Client, FlowJob
from jobline.cli.exit_codes import Exit
from tests.cli.conftest import NO_JOB


def test_flow_is_shown_as_a_tree(jobline, queue, served):
    shared = FlowJob(queue, name="leaf")
    gone = FlowJob(f"{queue}-gone", max_attempts=1)
    both = [FlowJob(queue, children=[shared], name=name) for name in ("left", "right")]
    with Client(served["grpc"]) as client:
        pushed = client.flows.push(FlowJob(queue, name="root", children=[*both, gone]))
    tree = jobline("flow", "get", str(pushed.id))
    lines = tree.out.splitlines()
    assert f"{pushed.id} {queue}/root blocked" in lines[0]
    assert f"{pushed.id_of(shared)} (see above)" in tree.out
    assert "… and more" not in tree.out
    assert len(lines) == 6
    cut = jobline("flow", "get", str(pushed.id), "--max-depth", "1")
    assert "… and more" in cut.out
    found = jobline("flow", "get", str(pushed.id), "--json").document
    assert [job["state"] for job in found["jobs"]] == [
        "BLOCKED",
        "BLOCKED",
        "BLOCKED",
        "READY",
        "READY",
    ]
    assert jobline("flow", "get", NO_JOB).code == Exit.NOT_FOUND


def test_flow_is_cancelled_as_a_whole(jobline, queue, served):
    with Client(served["grpc"]) as client:
        pushed = client.flows.push(FlowJob(queue, children=[FlowJob(queue), FlowJob(queue)]))
    dry = jobline("job", "cancel", pushed.id, "--below", "--dry-run", "--json").document
    assert dry["count"] == 3
    assert "3 jobs" in jobline("job", "cancel", pushed.id, "--below", "--yes").out


def test_parents_that_wait_are_counted_where_people_look(jobline, queue, served):
    with Client(served["grpc"]) as client:
        client.flows.push(FlowJob(queue, children=[FlowJob(f"{queue}-leaf")]))
        assert client.admin.stats().blocked >= 1
    assert re.search(r"^blocked +1 *$", jobline("queue", "get", queue).out, re.MULTILINE)
    heading, row = jobline("queue", "ls", queue).out.splitlines()[:2]
    columns = [name for name in heading.split() if name != "oldest"]
    assert dict(zip(columns, row.split(), strict=False))["blocked"] == "1"
    assert re.search(r"[1-9]\d* blocked", jobline("stats").out)
