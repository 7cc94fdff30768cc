"""Lists of a request are counted before its check reads them: one may have millions of entries."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jobline_server.auth.grants import PUSH, READ, WORK, Caller, Grants
from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.rpc import limits as rpc_limits
from jobline_server.rpc.access import push_checks, work_checks
from jobline_server.rpc.access.asking import LOOKUP_IDS_MAX, Ask
from jobline_server.rpc.access.checks import Check

REQUEST = {
    *("ids", "items", "jobs", "settles", "extends", "logs", "ack_ids", "acks", "fails", "releases"),
    *("queues", "handlers", "depends_on"),
}


class Long:
    """A list that nobody may read."""

    def __init__(self, entries: int) -> None:
        self._entries = entries

    def __len__(self) -> int:
        return self._entries

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("was read")


def message(**given: Any) -> Any:
    """A message with all fields that a check looks at."""
    made = SimpleNamespace(**(dict.fromkeys(REQUEST, ()) | {"batch_id": 0, "queue": "q"} | given))
    made.HasField = lambda name: name in given
    return made


def options(count: int) -> Any:
    return message(depends_on=Long(count))


@pytest.fixture
def ask() -> Ask:
    """Of a caller who is asked for each queue."""
    grants = Grants([(verb, ["q"]) for verb in (PUSH, WORK, READ)])
    return Ask(Caller("key:some", grants), cast("Any", SimpleNamespace(job_queues=None)))


@pytest.mark.parametrize(
    ("check", "request_"),
    [
        (work_checks.settle, message(ids=Long(LOOKUP_IDS_MAX + 1))),
        (work_checks.settle, message(items=Long(LOOKUP_IDS_MAX + 1))),
        (work_checks.settle, message(ids=Long(LOOKUP_IDS_MAX), items=Long(1))),
        (work_checks.release, message(items=Long(LOOKUP_IDS_MAX + 1))),
        (
            work_checks.release,
            message(pull=message(queues=Long(limits.QUEUES_PER_CONSUMER_MAX + 1))),
        ),
        (work_checks.stream_frame, message(settles=Long(rpc_limits.FRAME_SETTLES_MAX + 1))),
        (work_checks.stream_frame, message(settles=[message(ack_ids=Long(6_000))] * 2)),
        (work_checks.stream_frame, message(extends=Long(LOOKUP_IDS_MAX + 1))),
        (
            work_checks.stream_frame,
            message(open=message(queues=Long(limits.QUEUES_PER_CONSUMER_MAX + 1))),
        ),
        (
            work_checks.stream_frame,
            message(open=message(handlers=Long(rpc_limits.HANDLERS_MAX + 1))),
        ),
        (push_checks.push, message(options=message(), jobs=Long(limits.PUSH_JOBS_MAX + 1))),
        (push_checks.push, message(options=options(limits.PARENTS_MAX + 1))),
        (
            push_checks.push,
            message(options=message(), jobs=[message(options=options(limits.PARENTS_MAX + 1))]),
        ),
        (push_checks.push_flow, message(jobs=Long(rpc_limits.FLOW_JOBS_MAX + 1))),
    ],
)
def test_too_many_are_refused_unread(ask: Ask, check: Check, request_: Any) -> None:
    """An ack of three million items held the loop for two seconds, before it was refused."""
    with pytest.raises(Refused) as caught:
        check(ask, request_)
    assert caught.value.kind is RefusalKind.TOO_LARGE


def test_what_jobs_depend_on_is_counted_together(ask: Ask) -> None:
    """Each of a thousand jobs may name the same thousand."""
    own = message(depends_on=range(limits.PARENTS_MAX))
    read: list[Any] = []

    def jobs() -> Iterator[Any]:
        for _ in range(1_000):
            read.append(own)
            yield own

    with pytest.raises(Refused) as caught:
        push_checks.need_ties(ask, jobs())
    assert caught.value.kind is RefusalKind.TOO_LARGE
    assert len(read) == 12
