"""A runtime over a store in memory would be a fake: these tests take the real files."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest

from jobline_server.runtime.clock import Clock, ManualClock
from jobline_server.runtime.opening import open_runtime
from jobline_server.runtime.runtime import Runtime, RuntimeSettings
from jobline_server.storage.recovery import SetApart
from jobline_server.storage.sqlite.directory import stores_in
from jobline_server.storage.sqlite.store import SqliteSettings
from jobline_server.storage.stores import Stores
from tests.unit.runtime.machine import Machine


def nothing_is_damaged(found: SetApart) -> None:
    raise AssertionError(found)


async def opened_on(stores: Stores, clock: Clock, *, shards: int = 1) -> Runtime:
    """A runtime over stores that nothing is wrong with; its loop is not started."""
    names = count(1)
    return await open_runtime(
        stores,
        shards=shards,
        clock=clock,
        settings=RuntimeSettings(),
        new_name=lambda: f"name-{next(names):02}",
        report=nothing_is_damaged,
    )


def files_in(path: Path) -> Stores:
    """The real stores, without a reserve for a full disk."""
    return stores_in(path, SqliteSettings(ballast_bytes=0))


@asynccontextmanager
async def working(path: Path, clock: Clock) -> AsyncIterator[Runtime]:
    """A runtime at work, with one shard."""
    runtime = await opened_on(files_in(path), clock)
    runtime.start()
    try:
        yield runtime
    finally:
        await runtime.stop()


@asynccontextmanager
async def opened(path: Path, clock: Clock, *, shards: int = 1) -> AsyncIterator[Runtime]:
    """A runtime whose loop is not started: commits go when a test says so."""
    runtime = await opened_on(files_in(path), clock, shards=shards)
    try:
        yield runtime
    finally:
        # Commits have begun to send messages to other shards.
        await runtime.courier.stop()
        await runtime.ended.ended_store.close()
        await runtime.core.store.close()


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    """One on a clock that is moved by hand, with one shard."""
    async with opened(tmp_path, ManualClock()) as one:
        yield one


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The clock that `SystemClock` reads."""
    machine = Machine()
    monkeypatch.setattr(time, "monotonic_ns", machine.monotonic_ns)
    return machine
