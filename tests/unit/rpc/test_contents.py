"""Contents of jobs: each field of a reply that may hold some is left out, or stands here."""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from jobline.v1 import job_admin_service_pb2, job_pb2
from jobline_server.rpc.access.contents import CONTENTS, clear
from jobline_server.rpc.access.rules import RULES
from tests.server.calling import all_rpcs, method_of

# Replies to workers, who get what they work on.
WORK = {"PullResponse", "StreamResponse"}
NAMES = {
    "headers",
    "payload",
    "payloads",
    "result",
    "stack",
    "checkpoint",
    "partial",
    "data",
    "text",
}
# Their call needs `read_payload` as a whole.
WHOLE = {"GetJobLogsResponse"}


def fields_below(message: Descriptor, seen: set[str]) -> set[tuple[str, str]]:
    """The fields of a message and of those in it that may hold contents, by their type or name."""
    if message.full_name in seen or not message.full_name.startswith("jobline."):
        return set()
    seen.add(message.full_name)
    found = set()
    for field in message.fields:
        if field.type == FieldDescriptor.TYPE_BYTES or field.name in NAMES:
            found.add((message.name, field.name))
        if field.message_type is not None:
            found |= fields_below(field.message_type, seen)
    return found


def test_every_field_that_may_hold_contents_is_left_out() -> None:
    found: set[tuple[str, str]] = set()
    for rpc in all_rpcs():
        reply = method_of(rpc).output_type
        if reply.name not in WORK | WHOLE:
            found |= fields_below(reply, set())
    missing = {(name, field) for name, field in found if field not in CONTENTS.get(name, ())}
    assert not missing


def test_replies_with_contents_are_shown_by_rule() -> None:
    """A rule that only checks would send them as they are."""
    for rpc in all_rpcs():
        reply = method_of(rpc).output_type
        if reply.name not in WORK | WHOLE and fields_below(reply, set()):
            assert RULES[f"/jobline.v1.{rpc}"].show is not None, rpc


def test_what_is_left_of_a_job() -> None:
    job = job_pb2.Job(id=7, queue="q", payload=b"x", result=b"x", checkpoint=b"x")
    job.options.headers["a"] = "x"
    job.options.name = "n"
    job.error.type, job.error.message, job.error.stack = "E", "x", "x"
    job.history.add(attempt=1).error.message = "x"
    job.phases.add(name="p", result=b"x").error.details = b"x"
    clear(job)
    wanted = job_pb2.Job(id=7, queue="q")
    wanted.options.name, wanted.error.type = "n", "E"
    wanted.history.add(attempt=1).error.SetInParent()
    wanted.phases.add(name="p").error.SetInParent()
    assert job == wanted
    run = job_admin_service_pb2.JobRun(payloads=[b"x"], shared=job_pb2.Job(payload=b"x", id=3))
    run.header_columns.add(key="a", values=["x"])
    clear(run)
    assert run == job_admin_service_pb2.JobRun(shared=job_pb2.Job(id=3))
