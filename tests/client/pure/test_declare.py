"""Jobs declared once: types from annotations, bytes on request, mistakes that say what to do."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest

from jobline import Client, CodecError, InvalidArgument, JobOptions, JobType, Pushed, job
from jobline._options import OptionsHow


@job(queue="mail", name="send", options=JobOptions(max_attempts=2, priority=1), priority=9)
async def send(to: str, context: Any) -> None:
    """Sends a mail."""


@job(queue="raw")
def copy(data: bytes) -> bytes:
    return data


@job(queue="any")
def anything(payload):
    return payload


class Recorder(Client):
    """A client that pushes nowhere."""

    def __init__(self):
        self.pushed = []

    def push(self, queue, payload=b"", **how):
        self.pushed.append((queue, payload, how))
        return Pushed(1, None, None)  # type: ignore[arg-type]  # nobody looks

    def push_many(self, queue, jobs, **how):
        self.pushed.append((queue, list(jobs), how))
        return []


def test_a_declaration_has_the_name_types_and_words_of_its_function():
    """What is not said is taken from the function."""
    assert (send.queue, send.name, copy.name) == ("mail", "send", "copy")
    assert (send.payload, send.result, copy.payload) == (str, type(None), bytes)
    assert (anything.payload, anything.result) == (Any, Any)
    assert send.__doc__ == "Sends a mail."
    assert repr(send) == "<JobType mail/send>"
    assert copy(b"x") == b"x"


def test_fields_said_one_by_one_override_the_options():
    """And the name is part of them."""
    assert send.options == JobOptions(name="send", max_attempts=2, priority=9)


def test_payloads_are_encoded_as_declared():
    """Bytes stay bytes where they are declared or come; everything else is JSON and says so."""
    assert copy.encode(b"x") == (b"x", copy.options)
    assert anything.encode(b"x")[0] == b"x"
    data, options = anything.encode({"a": 1})
    assert (data, options.content_type) == (b'{"a":1}', "application/json")
    with pytest.raises(CodecError, match="takes bytes, not str"):
        copy.encode("x")  # type: ignore[arg-type]  # that is the mistake


def test_what_is_said_at_the_push_overrides_the_declaration():
    """Field by field, for one and for many."""
    client = Recorder()
    send.push(client, "a@b.c", options=JobOptions(priority=3), job_key="k")
    copy.push_many(client, [b"1", b"2"], delay=5, request_id="r1")
    copy.push_many(client, [])
    (queue, payload, how), many, none = client.pushed
    assert (queue, payload, how["job_key"]) == ("mail", b'"a@b.c"', "k")
    assert how["options"] == JobOptions(
        name="send", content_type="application/json", max_attempts=2, priority=3
    )
    assert many == (
        "raw",
        [b"1", b"2"],
        {"delay": 5, "options": copy.options, "request_id": "r1"},
    )
    assert none[1] == []


def test_payloads_of_no_declared_type_may_be_of_several_kinds():
    """Each says what it is; the first does not speak for the others."""
    client = Recorder()
    anything.push_many(client, [b"raw", {"a": 1}])
    ((_, payloads, how),) = client.pushed
    assert payloads == [b"raw", {"a": 1}]
    assert how["options"].content_type is None


def test_options_can_be_said_as_keywords():
    """All of them, with their types."""
    keywords = get_type_hints(OptionsHow, include_extras=True)
    hints = get_type_hints(JobOptions)
    assert keywords == {key: hints[key] for key in hints if key != "name" and key[0] != "_"}


def test_types_may_be_said_for_the_function():
    """Where annotations cannot be looked up, or there is no function."""

    @job(queue="q", payload=int, result=str)
    def local(payload):
        return str(payload)

    assert (local.payload, local.result) == (int, str)
    producer: JobType[int, str] = JobType(queue="q", name="n", payload=int, result=str)
    assert (producer.payload, producer.result) == (int, str)
    assert JobType(queue="q", name="n").payload is Any
    with pytest.raises(InvalidArgument, match="for producers alone"):
        producer(1)


def test_types_that_cannot_be_looked_up_say_what_to_do():
    """A class of a function's own is not visible to its annotations."""

    class Local:
        pass

    @job(queue="q")
    def handle(payload: Local) -> None:
        return None

    with pytest.raises(InvalidArgument, match="give payload= and result="):
        handle.encode(Local())
