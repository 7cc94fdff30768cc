"""Handlers that run in processes of their own, which find them here by their names."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from jobline import BatchItem, Context, Dead, Middleware, Retry, Snooze, WaitFor, job
from jobline._flow_values import FlowJob

logger = logging.getLogger("tests.children")


def pid(payload: str) -> int:
    return os.getpid()


def same(payload):
    return payload


async def async_same(payload):
    return payload


def echo(payload: dict[str, Any]) -> dict[str, Any]:
    return {"got": payload, "pid": os.getpid()}


LEFT = threading.Event()


def crash(payload: str, context: Context) -> str:
    """Dies in the way that it is told."""
    if payload == "exit":
        os._exit(3)
    if payload == "segfault":
        ctypes.string_at(0)
    if payload == "kill":  # as the kernel does that is out of memory
        os.kill(os.getpid(), signal.SIGKILL)
    if payload == "forked" and os.fork():  # what it has begun lives on
        os._exit(3)
    if payload == "forked":
        LEFT.wait(60)
        os._exit(0)
    if payload == "leave":
        sys.exit(4)
    return payload


def report(payload: str, context: Context) -> str:
    """Uses all that a context can do."""
    context.progress(40, "at work")
    context.log("a line", "warning")
    context.partial(b"piece")
    before = context.checkpoint_value()
    context.save_checkpoint({"at": payload})
    for name in context.phases.names:
        context.phases.finish(name, {"of": name})
    spawned = context.spawn("spawned", b"from a child")
    logger.warning("said in %s", context.name or "no name")
    return f"{before} {spawned.id} {context.attempt} {context.headers.get('who')}"


def outcome(payload: str) -> Any:
    """Raises what it is told, some with a cause that no other process could have."""
    if payload == "retry":
        raise Retry(5) from LocalError(threading.Lock())
    if payload == "snooze":
        return Snooze(60)
    if payload == "dead":
        raise Dead("for good")
    if payload == "wait":
        raise WaitFor(FlowJob("children", b"1"))
    raise LocalError(threading.Lock())


class LocalError(Exception):
    """What cannot be pickled."""


def wait_cancelled(payload: str, context: Context) -> None:
    """Stops as it should when it is asked to."""
    context.progress(1)
    context.wait_cancelled(20)
    context.raise_if_cancelled()


def stubborn(payload: str, context: Context) -> None:
    """Does not stop; but an exception ends it, and it says so."""
    context.progress(1)
    try:
        time.sleep(60)
    finally:
        Path(payload).write_text("cleaned up", encoding="utf-8")


def deaf(payload: str, context: Context) -> None:
    """Ends by SIGKILL alone."""
    context.progress(1)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    time.sleep(60)


def batch(items: list[BatchItem[int]]) -> list[Any]:
    """Answers each; one of them makes it crash."""
    if any(item.payload < 0 for item in items):
        os._exit(1)
    return [ValueError("seven") if item.payload == 7 else item.payload * 2 for item in items]


@job("declared")
def declared(number: int, times: int = 2) -> int:
    return number * times


class Marked(Middleware):
    """Says in which process it is."""

    def around_plain(self, contexts, call_next):
        return {"inner": call_next(), "around": os.getpid()}
