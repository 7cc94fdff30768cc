"""Pushes: what is stored, what is known already, and what is refused with nothing stored."""

from __future__ import annotations

from jobline_server.engine.commands import NewJob
from jobline_server.engine.values import DEFAULT_OPTIONS, PushOutcome

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
