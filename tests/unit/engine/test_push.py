"""Pushes: what is stored, what is known already, and what is refused with nothing stored."""

from __future__ import annotations

import pytest

from jobline_server.engine.commands import NewJob, RefusalKind, Refused
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, PushOutcome

DUPLICATE, REFUSED = PushOutcome.DUPLICATE, PushOutcome.REFUSED


def keyed(key: str, payload: bytes = b"x") -> NewJob:
    return NewJob(payload, DEFAULT_OPTIONS, key)


def test_repeated_request_of_rows_and_plain_payloads_stands_for_all_of_them(world):
    """Two facts tell of such a push; the request id knows both."""
    call = {"jobs": [keyed("a")], "payloads": [b"1", b"2"], "request_id": b"r"}
    first = world.push(**call)
    again = world.push(**call)
    assert (first.count, again.first_id, again.count) == (3, first.first_id, 3)
    assert world.counts() == (0, 3, 0)
    assert world.shard.load.keys == 2


def test_repeated_request_has_the_same_exceptions_as_the_first(world):
    """A reply that was lost is told again, with the jobs that were known or refused."""
    known = world.push(jobs=[keyed("a"), keyed("b")]).first_id
    jobs = [keyed("a"), keyed("new"), keyed("b", b"other"), keyed("new")]
    first = world.push(jobs=jobs, request_id=b"r", atomic=False)
    again = world.push(jobs=jobs, request_id=b"r", atomic=False)
    duplicate_in_call = (3, DUPLICATE, first.first_id)
    assert first.exceptions == [(0, DUPLICATE, known), (2, REFUSED, 0), duplicate_in_call]
    assert again == first


def test_key_of_a_job_that_is_never_written_promises_nothing_to_a_durable_push(world):
    """Its id would be told as stored, and would be gone after a crash."""
    world.push(jobs=[keyed("a")], level=AckLevel.MEMORY)
    with pytest.raises(Refused) as refused:
        world.push(jobs=[keyed("a")])
    assert refused.value.kind is RefusalKind.IDEMPOTENCY_MISMATCH
    pushed = world.push(jobs=[keyed("a"), keyed("b")], atomic=False)
    assert pushed.exceptions == [(0, REFUSED, 0)]
    assert world.push(jobs=[keyed("b")], level=AckLevel.MEMORY).exceptions[0][1] is DUPLICATE


def test_repeated_request_refuses_what_was_known_when_the_key_has_gone(world):
    """Nothing is told as created that was not."""
    world.push(jobs=[keyed("a")], level=AckLevel.MEMORY)
    call = {"jobs": [keyed("a"), keyed("b")], "request_id": b"r", "atomic": False}
    first = world.push(**call)
    world.shard = world.recovered()
    again = world.push(**call)
    assert (again.first_id, again.count) == (first.first_id, 1)
    assert again.exceptions == [(0, REFUSED, 0)]
