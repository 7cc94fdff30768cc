"""What is written by mistake is refused where it stands, in words that name what was meant."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

from jobline import Client, InvalidArgument, NewJob, Worker, job
from jobline._push.push_middleware import JOBS_MAX, listed
from jobline.errors import TooLarge
from tests.client.live.either import connected

KINDS = pytest.mark.parametrize("kind", ["blocking", "async"])


@pytest.mark.parametrize(
    ("decorator", "said"),
    [
        (Worker("localhost:1").handler, "@worker.handler"),
        (Worker("localhost:1").batch_handler, "@worker.batch_handler"),
        (job, "@job"),
    ],
)
def test_a_decorator_without_a_queue_is_refused(decorator: Any, said: str):
    """Trial B12: it would declare nothing, and the worker run without the handler."""
    with pytest.raises(InvalidArgument) as refused:

        @decorator
        def welcome(payload):
            return payload

    expected = f'queue: {said} takes the name of a queue, not welcome(): {said}("mail")'
    assert str(refused.value) == expected


def test_a_second_handler_for_jobs_without_a_name_is_told_so():
    """Their name is empty, which no sentence shows."""
    worker = Worker("localhost:1")
    worker.handler("mail")(print_it)
    with pytest.raises(InvalidArgument, match="has a handler for jobs without a name already"):
        worker.handler("mail")(print_it)


def print_it(payload: str) -> None:
    print(payload)


@pytest.mark.parametrize("single", ["abc", b"abc", {"to": "a@b.c"}, NewJob(1)])
def test_a_single_job_is_no_list_of_jobs(single: Any):
    """Text would be pushed letter by letter."""
    kind = type(single).__name__
    with pytest.raises(InvalidArgument, match=rf"takes a list, not one {kind}; push\(\) takes one"):
        listed(single)


@KINDS
async def test_push_many_takes_anything_else_that_can_be_counted(kind: str):
    """Lists, tuples and generators; the check is made before the server is asked for."""
    assert listed(number for number in (1, 2)) == [1, 2]
    async with connected(kind, "127.0.0.1:1") as client:
        for wrong in ("abc", 5):
            with pytest.raises(InvalidArgument, match="push_many"):
                await client("push_many", "q", wrong)
        assert await client("push_many", "q", ()) == []


@KINDS
@pytest.mark.parametrize("call", ["push", "push_many", "push_payloads"])
async def test_a_queue_is_named_by_text(tiny, kind: str, call: str):
    """Protobuf would say 'bad argument type for built-in operation'."""
    async with connected(kind, tiny.address) as client:
        with pytest.raises(InvalidArgument, match="queue: a queue is named by text, not by 5"):
            await client(call, 5, b"x" if call == "push" else [b"x"])


@pytest.mark.parametrize(
    ("call", "keyword", "meant"),
    [
        ("push", "key", "job_key"),
        ("push_many", "level", "ack_level"),
        ("push", "unique", "'unique_key'"),
        ("push_many", "unique_key", "each job has its own"),
        ("push_payloads", "job_key", "NewJob"),
        ("push", "at", "delay, run_at"),
    ],
)
def test_an_unknown_keyword_may_have_meant_any_of_the_call(call: str, keyword: str, meant: str):
    """Not only one of the options."""
    with Client("127.0.0.1:1") as client, pytest.raises(TypeError, match=meant):
        getattr(client, call)("q", [b"x"], **{keyword: "x"})


@pytest.mark.parametrize("wrong", [[1, 2], (1, 2), 1.5])
def test_ids_are_given_one_by_one(wrong: Any):
    """A list of them is unpacked by who has it."""
    said = re.escape("cancel() takes ids one by one")
    with Client("127.0.0.1:1") as client, pytest.raises(InvalidArgument, match=said):
        client.jobs.cancel(wrong)


@pytest.mark.parametrize("metadata", ["Bearer x", [("authorization", "x")]])
def test_metadata_is_a_mapping(metadata: Any):
    """Of text to text."""
    with pytest.raises(InvalidArgument, match="metadata is a mapping"):
        Client("localhost:1", metadata=metadata)


def test_jobs_without_an_end_are_refused_at_the_limit():
    """They were read until the memory was full."""
    numbers = itertools.count()
    with pytest.raises(TooLarge, match="at most 10,000 in a call") as refused:
        listed(numbers)
    assert refused.value.field == "jobs"
    assert next(numbers) == JOBS_MAX + 1
    assert len(listed(range(JOBS_MAX))) == JOBS_MAX
