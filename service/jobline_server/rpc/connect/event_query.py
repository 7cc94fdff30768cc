"""Reads the query of a stream of events: the fields of `WatchRequest`, in the words of a URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl

from jobline.v1 import event_pb2, job_service_pb2
from jobline_server.rpc.validate import fields

# In a URL; a head has room for some hundreds.
PARAMETERS_MAX = 1_000
UINT64_MAX = (1 << 64) - 1
# Of the name of a parameter that does not exist, in a message.
NAME_CHARACTERS_SHOWN = 64
KIND_PREFIX = "EVENT_KIND_"
# What a reader sends that connects again: the id of the last event it saw.
LAST_EVENT_ID = "last-event-id"
BOOLEANS = {"": True, "1": True, "true": True, "0": False, "false": False}


class EventQuery(NamedTuple):
    """What is watched, and whether the state of it comes first."""

    request: job_service_pb2.WatchRequest
    snapshot: bool


def read_query(query: str, headers: Mapping[str, str]) -> EventQuery:
    """Returns what a query and headers ask for. A reader that resumes gets no snapshot. Raises
    `Refused`.
    """
    request = job_service_pb2.WatchRequest(accepts_runs=True)
    snapshot = False
    for name, value in _parameters(query):
        if name == "queue":
            request.queues.extend(value.split(","))
        elif name == "events":
            request.kinds.extend(map(_kind, value.split(",")))
        elif name == "job":
            request.job_id = _job_id(value)
        elif name == "resume_token":
            request.resume_token = value
        elif name == "snapshot":
            snapshot = _boolean(value)
        else:
            raise fields.invalid(
                name[:NAME_CHARACTERS_SHOWN],
                "is none of queue, job, events, snapshot and resume_token",
            )
    # Of the header and the query the header is newer: browsers repeat the URL as it was.
    request.resume_token = headers.get(LAST_EVENT_ID, "") or request.resume_token
    return EventQuery(request, snapshot and not request.resume_token)


def _parameters(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            query, keep_blank_values=True, max_num_fields=PARAMETERS_MAX, errors="strict"
        )
    except ValueError:
        message = f"must be up to {PARAMETERS_MAX:,} parameters of UTF-8"
        raise fields.invalid("query", message) from None


def _kind(word: str) -> event_pb2.EventKind.ValueType:
    """Returns the kind of a word: `completed`, or its name in the protocol."""
    name = word.upper().removeprefix(KIND_PREFIX)
    number = event_pb2.EventKind.DESCRIPTOR.values_by_name.get(KIND_PREFIX + name)
    if number is None or not number.number:
        raise fields.invalid("events", "holds a word that is no kind of event")
    return event_pb2.EventKind.ValueType(number.number)


def _job_id(value: str) -> int:
    if value.isascii() and value.isdecimal() and len(value) <= len(str(UINT64_MAX)):
        job_id = int(value)
        if 0 < job_id <= UINT64_MAX:
            return job_id
    raise fields.invalid("job", "must be the id of a job")


def _boolean(value: str) -> bool:
    if value not in BOOLEANS:
        raise fields.invalid("snapshot", "must be true or false")
    return BOOLEANS[value]
