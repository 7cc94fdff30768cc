"""What people type: options as keywords, names for enums, text for spans, where the server is."""

from __future__ import annotations

import inspect
import pydoc
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from jobline import (
    AckLevel,
    AsyncClient,
    Backoff,
    BackoffKind,
    Client,
    InvalidArgument,
    JobOptions,
    JobType,
    NewJob,
    Pushed,
    PushMiddleware,
    PushOutcome,
    Worker,
    job,
)
from jobline._option_messages import options_message
from jobline._options import OptionsHow
from jobline._push.messages import level_of
from jobline._release_item import release_item
from jobline._requests import fail_item
from jobline._times import seconds_of


class Captured(PushMiddleware):
    """Keeps what would be pushed, and sends nothing."""

    def __init__(self):
        self.options: list[JobOptions] = []

    async def around(self, jobs, call_next):
        return self.around_plain(jobs, None)

    def around_plain(self, jobs, call_next):
        self.options += [one.options for one in jobs]
        return [Pushed(1, PushOutcome.CREATED, AckLevel.FSYNCED)] * len(jobs)


PUSHES: list[tuple[str, Any]] = [
    ("push", {"a": 1}),
    ("push_many", [b"1"]),
    ("push_payloads", [b"1"]),
]
SAID: Any = {"name": "n", "max_attempts": 5, "lease": "1m", "options": JobOptions(priority=2)}


@pytest.mark.parametrize(("method", "payload"), PUSHES)
async def test_every_push_takes_options_as_keywords(method, payload):
    """Trial D6: `push(max_attempts=5)` reaches the job, from both clients, over `options`."""
    captured = Captured()
    with Client("localhost:1", middleware=[captured]) as client:
        getattr(client, method)("q", payload, **SAID)
    async with AsyncClient("localhost:1", middleware=[captured]) as awaited:
        await getattr(awaited, method)("q", payload, **SAID)
    said = [one.replaced(content_type=None) for one in captured.options]
    assert said == [JobOptions(name="n", max_attempts=5, lease="1m", priority=2)] * 2
    assert options_message(captured.options[0]).lease.seconds == 60


def test_declared_jobs_take_options_as_keywords_where_they_are_declared_and_pushed():
    """Trial D6: what is said at the push overrides what was declared, field by field."""
    captured = Captured()
    told = JobType(queue="q", name="n", payload=bytes, max_attempts=5, priority=1)
    with Client("localhost:1", middleware=[captured]) as client:
        told.push(client, b"", priority=2)
        told.push_many(client, [b""], options=JobOptions(priority=3), lease=9)
    one, many = captured.options
    assert one == JobOptions(name="n", max_attempts=5, priority=2)
    assert many == JobOptions(name="n", max_attempts=5, priority=3, lease=9)


def test_a_job_of_many_takes_options_as_keywords():
    """Trial D6: as a push does; a changed copy keeps what it had."""
    one = NewJob({"a": 1}, name="n", priority=9, options=JobOptions(priority=1, lease=5), delay=2)
    assert one.options == JobOptions(name="n", priority=9, lease=5)
    assert replace(one, delay=3) == NewJob({"a": 1}, options=one.options, delay=3)
    assert NewJob(b"x").options is None
    with pytest.raises(TypeError, match="did you mean 'priority'"):
        NewJob(b"", prority=9)  # type: ignore[call-arg]  # that is the mistake


@pytest.mark.parametrize(("method", "payload"), [*PUSHES, ("push_and_wait", b"")])
def test_a_wrong_keyword_is_refused_with_the_right_one(method, payload):
    """Trial D6: never dropped in silence; the error is Python's own kind."""
    with (
        Client("localhost:1", middleware=[Captured()]) as client,
        pytest.raises(TypeError, match=r"'max_atempts': did you mean 'max_attempts'\?"),
    ):
        getattr(client, method)("q", payload, max_atempts=5)


def test_help_shows_each_keyword():
    """Trial D6: with its type, as in an editor."""
    for function in (Client.push, AsyncClient.push_many, JobType, job, JobType.push):
        shown = inspect.signature(function).parameters
        assert set(OptionsHow.__annotations__) <= set(shown)
        assert "more" not in shown
    assert "max_attempts: 'int | None' = None" in pydoc.render_doc(Client.push)


@pytest.mark.parametrize(
    ("span", "seconds"), [(1.5, 1.5), (timedelta(minutes=1), 60), ("1h30m", 5_400), ("250ms", 0.25)]
)
def test_spans_are_seconds_timedeltas_or_text(span, seconds):
    """Trial D6: wherever a span is taken."""
    assert seconds_of(span) == seconds


def test_text_that_is_no_span_is_refused_with_examples():
    """Trial D6: as the command line does it."""
    with pytest.raises(InvalidArgument, match="write 90s, 5m"):
        seconds_of("soon")


def test_enums_are_taken_by_name():
    """Trial D6: `then="dead"` is `FailAction.DEAD`; what is no name is refused with all names."""
    assert level_of("memory") is level_of(AckLevel.MEMORY) is AckLevel.MEMORY
    assert int(Backoff(kind="fixed").to_message().kind) == BackoffKind.FIXED
    assert fail_item((1, 1), None, then="dead").then == 2
    assert release_item((1, 1), delay=None, why="snooze").why == 1
    with pytest.raises(InvalidArgument, match="'disk' is not one of memory, buffered, fsynced"):
        level_of("disk")  # type: ignore[arg-type]  # that is the mistake


def test_every_client_finds_the_server_alike(monkeypatch):
    """Trial D6: an argument, else JOBLINE_SERVER, else this machine, as the command line does."""

    def targets(*arguments: Any) -> set[str]:
        with Client(*arguments) as client:
            worker = Worker(*arguments)
            return {client.target, AsyncClient(*arguments).target, worker._settings.address.target}

    monkeypatch.delenv("JOBLINE_SERVER", raising=False)
    assert targets() == {"localhost:7070"}
    monkeypatch.setenv("JOBLINE_SERVER", "jobs.example:1234")
    assert targets() == {"jobs.example:1234"}
    assert targets("other:1") == {"other:1"}
    with pytest.raises(InvalidArgument, match="address is empty"):
        Client("")
