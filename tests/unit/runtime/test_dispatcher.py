"""Hand-outs and commits: nothing is handed out before it is on disk, and nothing is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import Pull, Push
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.load import Load
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobOptions, JobState
from jobline_server.runtime import dispatcher
from jobline_server.runtime.calls.pulls import LongPoll
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.core import Core
from jobline_server.runtime.dispatcher import Dispatcher
from jobline_server.runtime.slots import JournalPosition, ShardSlot, ShardSlots
from jobline_server.storage.segments import KeySegments


class SlowDisk:
    """A store whose commit returns when the test says so."""

    def __init__(self) -> None:
        self.written = asyncio.Event()

    async def commit(self, _rows: Sequence[object], _ceilings: Mapping[int, int]) -> None:
        await self.written.wait()


class World:
    """One shard, one queue, somebody who waits at it."""

    def __init__(self, max_jobs: int = 10) -> None:
        self.disk = SlowDisk()
        load = Load()
        self.shard = Shard(0, epoch=1, load=load)
        place = JournalPosition(0, limits.ID_BLOCK, 0, 0, 0, KeySegments(0))
        self.slot = ShardSlot(self.shard, place)
        slots = ShardSlots([self.slot], 1)
        self.core = Core(cast(Any, self.disk), slots, ManualClock(), load)
        self.taker = LongPoll(Pull((("mail", 1),), max_jobs=max_jobs))
        self.dispatcher = Dispatcher(self.core)
        self.dispatcher.join(self.taker)

    def push(self, payload: bytes) -> None:
        """Decides a push, and leaves it to the next commit."""
        command = Push("mail", JobOptions(), payloads=Payloads.of([payload]))
        decide_push(self.shard, self.core.now(), command)
        self.core.after_decision(self.slot)

    def handed_out(self) -> list[bytes]:
        """Payloads in the order in which they came."""
        runs = [run for leased in self.taker.leased for run in leased.runs]
        return [payload for run in runs for payload in run.payloads]

    async def commit(self, meanwhile: bytes = b"") -> None:
        """One commit, and a push while it is on its way to the disk."""
        self.disk.written.clear()
        commit = asyncio.create_task(self.core.commits.commit_once())
        await asyncio.sleep(0)
        if meanwhile:
            self.push(meanwhile)
        self.disk.written.set()
        await commit


async def test_a_job_is_handed_out_after_its_commit_and_not_before() -> None:
    """What a worker has is on disk."""
    world = World()
    world.push(b"first")
    assert world.handed_out() == []
    await world.commit()
    assert world.handed_out() == [b"first"]


async def test_a_job_pushed_during_another_commit_is_handed_out_after_its_own() -> None:
    """The commit under way wakes its queue too early for it; its own must wake it again."""
    world = World()
    world.push(b"first")
    await world.commit(meanwhile=b"second")
    assert world.handed_out() == [b"first"]
    await world.commit()
    assert world.handed_out() == [b"first", b"second"]


async def handed_out_by_turn(world: World, takers: Sequence[LongPoll]) -> list[int]:
    """Commits, and says how many jobs went out in each iteration of the loop until all had."""
    total, turns = world.shard.queues["mail"].counts[JobState.READY], [0]
    commit = asyncio.create_task(world.commit())
    while sum(turns) < total:
        await asyncio.sleep(0)
        given = sum(leased.count() for taker in takers for leased in taker.leased)
        turns.append(given - sum(turns))
    await commit
    return turns


async def test_a_wide_window_is_filled_over_several_turns_of_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hundred thousand small pushes that wait for one worker hold up nobody: in each iteration of
    the loop a bounded number goes out, in order, and nothing is forgotten.
    """
    monkeypatch.setattr(limits, "LEASE_SLICE_ITEMS", 10)
    monkeypatch.setattr(dispatcher, "ITERATION_ITEMS", 10)
    monkeypatch.setattr(dispatcher, "LITTLE_ITEMS", 5)
    world = World(max_jobs=100)
    payloads = [b"%d" % number for number in range(35)]
    for payload in payloads:
        world.push(payload)
    assert max(await handed_out_by_turn(world, [world.taker])) == 10
    assert world.handed_out() == payloads


async def test_many_idle_workers_are_served_over_several_turns_of_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A commit that brings work for a thousand workers is not one step of the loop, and each of
    them has its turn.
    """
    monkeypatch.setattr(dispatcher, "HAND_OUT_ITEMS", 5)
    monkeypatch.setattr(dispatcher, "ITERATION_ITEMS", 10)
    monkeypatch.setattr(dispatcher, "LITTLE_ITEMS", 5)
    world = World()
    takers = [world.taker, *(LongPoll(Pull((("mail", 1),), max_jobs=10)) for _ in range(9))]
    for taker in takers[1:]:
        world.dispatcher.join(taker)
    for _ in takers:
        world.push(b"x")
    assert max(await handed_out_by_turn(world, takers)) == 2
    assert all(len(taker.leased) == 1 for taker in takers)
