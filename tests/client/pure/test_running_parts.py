"""A handler's surroundings: its own context variables, what it is told, what it may say."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from jobline import CancelReason, Context, InvalidArgument, LogLevel, Retry, Snooze, Stopped
from jobline._leased import LeasedJob
from jobline._worker.isolated import Isolated
from jobline.v1 import job_pb2

# ---------------------------------------------------------------------- isolation

VARIABLE = contextvars.ContextVar("VARIABLE", default=0)


async def test_what_a_handler_sets_is_gone_with_it():
    """Two handlers in one task do not see each other's context variables, across suspensions
    too.
    """

    async def handler():
        assert VARIABLE.get() == 0
        VARIABLE.set(1)
        await asyncio.sleep(0)
        assert VARIABLE.get() == 1
        return "done"

    suspended = []
    for _ in range(2):
        assert await Isolated(handler(), lambda: suspended.append(1)) == "done"
    assert suspended == [1, 1]
    assert VARIABLE.get() == 0


async def test_a_handler_that_never_waits_is_not_said_to_wait():
    """It costs no turn of the loop."""

    async def handler():
        return 1

    assert await Isolated(handler(), pytest.fail) == 1


async def test_exceptions_and_cancellation_pass_through():
    """The handler sees its cancellation, and the runner sees the handler's error."""
    started = asyncio.Event()
    seen = []

    async def handler():
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise KeyError("mine") from None

    async def runner():
        return await Isolated(handler(), lambda: None)

    task = asyncio.create_task(runner())
    await started.wait()
    task.cancel()
    with pytest.raises(KeyError, match="mine"):
        await task
    assert seen == ["cancelled"]


async def test_timeouts_inside_a_handler_work():
    """They cancel the task they are in, which is the runner's."""

    async def handler():
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            return "late"

    assert await Isolated(handler(), lambda: None) == "late"


# ---------------------------------------------------------------------- context and outcomes


class Reporting:
    def __init__(self):
        self.said = []

    def report(self, job, **what):
        self.said.append((job.id, {key: value for key, value in what.items() if value is not None}))
        return True

    def log(self, job, level, text):
        self.said.append((job.id, {"level": level, "text": text}))
        return True

    def finish_phase(self, job, name, result):
        self.said.append((job.id, {"phase": name, "result": result}))
        return True


def new_context(**job):
    reporting = Reporting()
    leased = LeasedJob(7, 3, "q", job_pb2.JobOptions(name="n", headers={"a": "b"}), b"", **job)
    return Context(leased, reporting, "state"), reporting


def test_lines_of_a_log_have_a_level_by_name_or_member():
    """Anything else is refused where it is written, and not when it is sent."""
    context, reporting = new_context()
    context.log("begun")
    context.log("odd", "warning")
    context.log("bad", LogLevel.ERROR)
    assert [(said["level"], said["text"]) for _, said in reporting.said] == [
        (LogLevel.INFO, "begun"),
        (LogLevel.WARNING, "odd"),
        (LogLevel.ERROR, "bad"),
    ]
    with pytest.raises(InvalidArgument, match="'loud' is not one of"):
        context.log("x", "loud")
    with pytest.raises(InvalidArgument, match="text: must be text"):
        context.log(5)


def test_a_context_tells_what_the_job_is():
    """Everything of the lease, and what the worker's lifespan made."""
    context, _ = new_context(attempt=2, job_key="k", checkpoint=b'{"at": 5}')
    assert (context.id, context.delivery, context.attempt, context.queue) == (7, 3, 2, "q")
    assert (context.name, context.headers, context.job_key) == ("n", {"a": "b"}, "k")
    assert (context.state, context.checkpoint_value()) == ("state", {"at": 5})


def test_reports_are_checked_before_they_are_sent():
    """The server would end the stream over them."""
    context, reporting = new_context()
    context.progress(40, "reading")
    context.save_checkpoint({"at": 6})
    assert reporting.said == [
        (7, {"progress": 40, "message": "reading"}),
        (7, {"checkpoint": b'{"at":6}'}),
    ]
    assert context.checkpoint_value() == {"at": 6}
    with pytest.raises(InvalidArgument, match="0 … 100"):
        context.progress(float("nan"))
    with pytest.raises(InvalidArgument, match="64 KiB"):
        context.save_checkpoint(b"x" * 70_000)


def test_a_cancelled_context_says_why_and_wakes_who_waits():
    """Once: the first reason stays."""
    context, _ = new_context()
    stopped = []
    context.on_cancel(lambda: stopped.append(1))
    waiter = threading.Thread(target=context.wait_cancelled)
    waiter.start()
    context.raise_if_cancelled()
    context.cancel(CancelReason.CANCELLED)
    context.cancel(CancelReason.STOPPING)
    waiter.join(5)
    assert not waiter.is_alive()
    assert (context.cancelled, context.cancel_reason, stopped) == (
        True,
        CancelReason.CANCELLED,
        [1],
    )
    assert context.wait_cancelled(0)
    with pytest.raises(Stopped):
        context.raise_if_cancelled()


def test_threads_that_wait_for_the_same_end_share_their_event(monkeypatch):
    """A handler may wait in several threads: none of them keeps an event that nobody sets."""
    context, _ = new_context()
    together, made = threading.Barrier(2), []

    def slow_event():
        made.append(1)
        with contextlib.suppress(threading.BrokenBarrierError):
            together.wait(0.2)  # for the other thread, if nothing keeps it out
        return threading.Event()

    monkeypatch.setattr("jobline._context.threading", SimpleNamespace(Event=slow_event))
    waiters = [threading.Thread(target=context.wait_cancelled, args=(0,)) for _ in range(2)]
    for waiter in waiters:
        waiter.start()
    for waiter in waiters:
        waiter.join()
    assert made == [1]


def test_words_about_progress_are_cut_where_the_server_would_cut_them():
    """What is cut anyway need not travel, and what is no text cannot."""
    context, reporting = new_context()
    context.progress(1, "ü" * 5_000 + "\udcff")
    context.progress(2)
    assert reporting.said == [(7, {"progress": 1, "message": "ü" * 2_048}), (7, {"progress": 2})]


def test_a_context_that_is_cancelled_before_it_runs_stops_its_runner():
    """The runner says how to stop it a moment after it could be cancelled."""
    context, _ = new_context()
    context.cancel(CancelReason.STOPPING)
    stopped = []
    context.on_cancel(lambda: stopped.append(1))
    assert stopped == [1]


@pytest.mark.parametrize("after", [90, "1m30s", timedelta(seconds=90)])
def test_a_snooze_says_its_time_with_its_unit(after: Any):
    """`jobline work` shows it."""
    assert str(Snooze(after)) == "snoozed for 90 s"


@pytest.mark.parametrize("make", [lambda: Retry(-1), lambda: Retry(86_401), lambda: Snooze(4e7)])
def test_outcomes_outside_the_protocol_are_refused_where_they_are_made(make):
    """On the stream they would cost the worker its connection."""
    with pytest.raises(InvalidArgument, match=r"is 0 … "):
        make()
