"""A server without work is woken as seldom as can be: what comes again and again comes together."""

from __future__ import annotations

import asyncio
from asyncio import TimerHandle
from contextvars import Context
from typing import Any

import pytest

from jobline_server.runtime.waiting import TICK_SECONDS
from jobline_server.testing import RunningServer
from tests.server.conftest import until

BEATS = 3


async def test_all_timers_of_a_resting_server_end_with_a_tick(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the writer, of each periodic task, of jobs and of the heartbeat."""
    heartbeat, loop = server.runtime.core.heartbeat, asyncio.get_running_loop()
    await until(lambda: heartbeat.resting)
    call_at, off, beats = loop.call_at, list[tuple[float, object]](), 0

    def noted(
        when: float, callback: Any, *given: Any, context: Context | None = None
    ) -> TimerHandle:
        beyond = when % TICK_SECONDS
        if min(beyond, TICK_SECONDS - beyond) > 1e-3:
            off.append((when - loop.time(), callback))
        return call_at(when, callback, *given, context=context)

    monkeypatch.setattr(loop, "call_at", noted)
    rested = asyncio.Event()

    def beat() -> None:
        nonlocal beats
        beats += 1
        if beats == BEATS:
            rested.set()

    monkeypatch.setattr(heartbeat, "on_heartbeat", beat)
    await rested.wait()
    assert heartbeat.resting
    assert not off
