"""Reads the jobs of a push that have fields of their own, a thousand in one step.

They are read as messages whose options are bytes, which is how options are looked up, and which do
not know the fields that few jobs set. An object for the options of each job, and for a list that is
not there, would cost more than all the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Any, NamedTuple

from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from jobline.v1 import job_pb2, job_service_pb2
from jobline_server.engine.commands import Refused
from jobline_server.rpc.convert.parents import indexes_of_parents
from jobline_server.rpc.validate import fields
from jobline_server.rpc.validate.mistyped import check_own_fields

_indexes_of: Callable[[job_pb2.NewJob], Sequence[int]] = attrgetter("depends_on_indexes")


class Rows(NamedTuple):
    """The jobs of a push, as columns; `starts` are the names of the fields that say when a job
    starts. `parent_indexes` is empty if no job depends on another one of the push.
    """

    payloads: list[bytes]
    overrides: list[bytes]
    job_keys: list[str]
    starts: list[str | None]
    parent_indexes: list[tuple[int, ...]]


def rows_of(request: job_service_pb2.PushRequest) -> Rows:
    """Returns the `jobs` of a request."""
    rows = list(_Request.FromString(request.SerializeToString()).jobs)
    parent_indexes: list[tuple[int, ...]] = []
    if any(map(len, map(UnknownFieldSet, rows))):
        _find_mistyped(request.jobs)
        columns = list(map(_indexes_of, request.jobs))
        parent_indexes = indexes_of_parents(columns) if any(columns) else []
    return Rows(
        payloads=[row.data or row.text.encode() for row in rows],
        overrides=[row.options for row in rows],
        job_keys=[row.job_key for row in rows],
        starts=list(map(_Row.WhichOneof, rows, repeat("start"))),
        parent_indexes=parent_indexes,
    )


def _find_mistyped(rows: Sequence[job_pb2.NewJob]) -> None:
    for index, row in enumerate(rows):
        try:
            check_own_fields(row)
        except Refused as refused:
            raise fields.within(f"jobs[{index}]", refused) from None


def _with_options_as_bytes() -> tuple[Any, Any]:
    """Returns classes of a push and of its jobs that are the same on the wire."""
    file = FileDescriptorProto(name="rows.proto", package="rows", syntax="proto3")
    row = file.message_type.add(name="NewJob")
    row.oneof_decl.add(name="start")
    for name in ("data", "text", "options", "job_key", "delay", "run_at"):
        field = job_pb2.NewJob.DESCRIPTOR.fields_by_name[name]
        is_text = field.type == Field.TYPE_STRING
        made = row.field.add(
            name=name,
            number=field.number,
            type=Field.TYPE_STRING if is_text else Field.TYPE_BYTES,
            label=Field.LABEL_OPTIONAL,
        )
        if name in ("delay", "run_at"):
            made.oneof_index = 0
    jobs = job_service_pb2.PushRequest.DESCRIPTOR.fields_by_name["jobs"]
    file.message_type.add(name="Request").field.add(
        name="jobs",
        number=jobs.number,
        type=Field.TYPE_MESSAGE,
        type_name=".rows.NewJob",
        label=Field.LABEL_REPEATED,
    )
    pool = DescriptorPool()
    pool.Add(file)
    find = pool.FindMessageTypeByName
    return GetMessageClass(find("rows.Request")), GetMessageClass(find("rows.NewJob"))


_Request, _Row = _with_options_as_bytes()
