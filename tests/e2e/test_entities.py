"""Entities over a real server and several workers, some of which are killed or cut off."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from asyncio.subprocess import Process
from collections import defaultdict
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from jobline import (
    AsyncClient,
    Client,
    Entity,
    IdleReason,
    JobDead,
    JobState,
    Worker,
    entity_method,
)
from jobline_server.testing import running_server
from tests.client.live.working import working

PROGRAM = Path(__file__).with_name("entity_worker.py")
ENTITIES = [f"e{number}" for number in range(8)]
STEPS = 80


class Account(Entity, kind="account"):
    """Money, kept in memory alone."""

    left: list[tuple[str, IdleReason]]

    async def on_activate(self) -> None:
        self.balance = 0

    async def on_idle(self, reason: IdleReason) -> None:
        self.state.append((self.key, reason))

    @entity_method
    async def deposit(self, amount: int) -> int:
        self.balance += amount
        return self.balance

    @entity_method(delivery="once")
    async def pay(self, amount: int) -> int:
        if amount > self.balance:
            raise ValueError("not enough")
        self.balance -= amount
        return self.balance


async def test_entity_is_called_as_an_actor_is(client: AsyncClient) -> None:
    """By its class with types, by its name, by both clients; many calls keep their order."""
    worker = Worker(client.target)
    worker.add_entity(Account)
    async with working(worker):
        anna = client.entity(Account, "anna")
        assert await anna.push_and_wait(Account.deposit, 5) == 5
        answers = await asyncio.gather(
            *[anna.push_and_wait(Account.deposit, 1) for _ in range(10)],
            client.entity("account", "ben").push_and_wait("deposit", 3),
        )
        assert answers == [*range(6, 16), 3]
        with Client(client.target) as blocking:
            ref = blocking.entity(Account, "anna")
            paid = await asyncio.to_thread(ref.push_and_wait, Account.pay, 10)
        assert paid == 5


async def test_call_that_may_run_once_is_not_repeated(client: AsyncClient) -> None:
    """A failure is final, and the next call finds an entity made anew."""
    left: list[tuple[str, IdleReason]] = []
    worker = Worker(client.target, lifespan=lambda: _Shared(left))
    worker.add_entity(Account)
    async with working(worker):
        anna = client.entity(Account, "anna")
        await anna.push_and_wait(Account.deposit, 5)
        with pytest.raises(JobDead, match="not enough"):
            await anna.push_and_wait(Account.pay, 7)
        assert await anna.push_and_wait(Account.deposit, 1) == 1
    assert left == [("anna", IdleReason.LOST), ("anna", IdleReason.STOPPING)]


class _Shared(AbstractAsyncContextManager[Any]):
    """A lifespan that yields a list."""

    def __init__(self, shared: list[tuple[str, IdleReason]]) -> None:
        self._shared = shared

    async def __aenter__(self) -> list[tuple[str, IdleReason]]:
        return self._shared

    async def __aexit__(self, *_: object) -> None:
        pass


async def started(address: str, directory: Path) -> Process:
    return await asyncio.create_subprocess_exec(sys.executable, PROGRAM, address, directory)


async def test_g11_one_at_a_time_and_in_order_through_kills_and_reconnects(tmp_path: Path) -> None:
    """G11: three workers take the steps of eight entities; each is killed or stopped in turn, and
    the server's streams break. No step begins while another of its entity runs, none is left out,
    none comes after a later one, and what is remembered is always the step before."""
    chance = random.Random(7)
    async with running_server() as server, AsyncClient(server.address) as client:
        await client.queues.update("walker", disconnect_grace=0.2, max_stalls=100)
        workers = [await started(server.address, tmp_path) for _ in range(3)]
        pushes = [
            await client.entity("walker", key).push("step", number)
            for number in range(1, STEPS + 1)
            for key in ENTITIES
        ]
        await client.wait_one(pushes[0].id, timeout=60)
        killed: list[int] = []
        for turn in range(4):
            await asyncio.sleep(chance.uniform(0.3, 0.5))
            process = workers.pop(0)
            killed.append(process.pid)
            os.kill(process.pid, (signal.SIGKILL, signal.SIGTERM)[turn % 2])
            await process.wait()
            workers.append(await started(server.address, tmp_path))
        async for end in client.wait(*[one.id for one in pushes], timeout=60):
            assert end.state is JobState.COMPLETED
        for process in workers:
            process.terminate()
            await process.wait()
    check((tmp_path / "steps").read_text().splitlines(), {*killed})


def check(lines: list[str], killed: set[int]) -> None:
    """Compares what happened with what may."""
    running: dict[str, tuple[int, int]] = {}
    done: dict[str, int] = defaultdict(int)
    for line in lines:
        what, key, text, process = line.split()
        number, worker = int(text), int(process)
        if what == "begin":
            before = running.get(key)
            assert before is None or before[1] in killed, f"{key}: {before} runs, {line}"
            assert done[key] <= number <= done[key] + 1, f"{key} is at {done[key]}, {line}"
            running[key] = number, worker
        elif what == "memory":
            # A step that was written and not confirmed comes again.
            assert number in {done[key], done[key] + 1}, f"{key} is at {done[key]}, {line}"
        elif what == "end":
            assert running.pop(key) == (number, worker), line
            done[key] = number
    assert dict(done) == dict.fromkeys(ENTITIES, STEPS)
