"""Flows that wait for their turn, and callers that do not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from jobline_server.runtime import pace
from jobline_server.runtime.clock import ManualClock
from tests.unit.runtime.calls.test_flows import SHARDS, a_flow, live, until
from tests.unit.runtime.conftest import opened
from tests.unit.runtime.shard_faults import a_moment


async def test_caller_that_goes_away_while_it_waits_leaves_nothing(tmp_path: Path) -> None:
    """On a full disk that may take hours: nobody keeps its payloads, or stores them then."""
    async with opened(tmp_path, ManualClock(), shards=SHARDS) as runtime:
        exclusive = runtime.core.commits.exclusive
        await exclusive.acquire()
        calls = [
            asyncio.ensure_future(runtime.flows.push_flow(3, iter(a_flow()))) for _ in range(3)
        ]
        await a_moment()
        for call in calls[:2]:
            call.cancel()
        await asyncio.gather(*calls[:2], return_exceptions=True)
        exclusive.release()
        await until(lambda: live(runtime) == 3 and not exclusive.locked())
        await runtime.core.commits.commit_once()
        assert len(await calls[2]) == live(runtime) == 3


async def test_caller_that_goes_away_later_leaves_a_whole_flow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "SLICE_SECONDS", 0.0)
    async with opened(tmp_path, ManualClock(), shards=SHARDS) as runtime:
        call = asyncio.ensure_future(runtime.flows.push_flow(3, iter(a_flow())))
        await until(lambda: live(runtime) > 0)
        assert live(runtime) < 3
        call.cancel()
        await until(lambda: live(runtime) == 3)
        await until(lambda: not runtime.core.commits.exclusive.locked())
        await runtime.core.commits.commit_once()


async def test_a_commit_goes_between_two_flows(tmp_path: Path) -> None:
    """However many wait: others are not held up by more than one of them."""
    async with opened(tmp_path, ManualClock(), shards=SHARDS) as runtime:
        exclusive, order = runtime.core.commits.exclusive, list[str]()

        async def a_commit() -> None:
            async with exclusive:
                order.append(f"a commit beside {live(runtime)} jobs")
                await runtime.core.commits.commit_once()

        await exclusive.acquire()
        calls = [
            asyncio.ensure_future(runtime.flows.push_flow(3, iter(a_flow()))) for _ in range(4)
        ]
        await a_moment()
        commit = asyncio.ensure_future(a_commit())
        await a_moment()
        exclusive.release()
        await commit
        assert order == ["a commit beside 3 jobs"]
        await until(lambda: live(runtime) == 12 and not exclusive.locked())
        await runtime.core.commits.commit_once()
        assert len({one for ids in await asyncio.gather(*calls) for one in ids}) == 12
