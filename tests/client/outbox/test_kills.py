"""Relays and workers that are killed at random moments: each effect once, and none of what was
rolled back.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

import pytest

from jobline import AsyncClient
from jobline.outbox import Outbox
from tests.client.live.working import program
from tests.client.outbox.databases import Database

OUTBOX = Outbox()
KILLS = 6

CONNECT = """
import os, random, sqlite3, sys, time

kind, target, address = sys.argv[1:]

def connect():
    if kind == "sqlite":
        return sqlite3.connect(target, timeout=30, check_same_thread=False)
    import psycopg
    return psycopg.connect(target)

def at_work():
    # Whole lines: threads that print write them in two parts.
    os.write(1, b"at work\\n")

def pause():
    # So that kills meet each place between two steps.
    time.sleep(random.uniform(0, 0.05))
"""

RELAY = f"""{CONNECT}
from jobline import Client
from jobline.outbox import Relay

class Slow(Client):
    def push_many(self, *arguments, **more):
        at_work()
        pushed = super().push_many(*arguments, **more)
        pause()
        return pushed

relay = Relay(connect, Slow(address), poll=0.01, batch=9)
relay.run()
"""

WORKER = f"""{CONNECT}
from jobline import Worker
from jobline.outbox import fence

worker = Worker(address, concurrency=4, lease=1)

@worker.handler("effects-" + kind)
def apply(number: int, context) -> None:
    at_work()
    connection = connect()
    try:
        if fence(connection, context):
            mark = "?" if kind == "sqlite" else "%s"
            connection.cursor().execute(f"INSERT INTO effects VALUES ({{mark}})", (number,))
            pause()
        connection.commit()
    finally:
        connection.close()
    pause()

worker.run()
"""


async def keep_killing(text: str, arguments: tuple[str, ...], chance: random.Random) -> None:
    """Runs a program, kills it in the middle of its work, and starts it again."""
    for _ in range(KILLS):
        async with program(text, *arguments) as process:
            for _ in range(chance.randint(1, 5)):
                assert b"at work" in await process.stdout.readline()
            # Not for luck: the moment of the kill is what is drawn.
            await asyncio.sleep(chance.uniform(0, 0.1))
            process.kill()
            await process.wait()


async def write_orders(
    database: Database, chance: random.Random, until: asyncio.Future[Any]
) -> set[int]:
    """Writes orders with their jobs, some of which are rolled back, while others are killed;
    returns those that stay.
    """
    kept = set()
    for number in itertools.count():
        connection = database.connect()
        OUTBOX.push(connection, f"effects-{database.kind}", number, lease=1, max_stalls=1_000)
        if chance.random() < 0.8:
            connection.commit()
            kept.add(number)
        else:
            connection.rollback()
        connection.close()
        if until.done():
            until.result()
            return kept
        await asyncio.sleep(0.02)
    raise AssertionError


@pytest.mark.timeout(600)
async def test_each_effect_is_there_once_however_relay_and_worker_are_killed(database, server):
    """Six kills of each, at moments that were drawn."""
    seed = random.randrange(2**32)
    print("seed", seed)
    arguments = (database.kind, database.target, server.address)
    chances = [random.Random(seed + number) for number in range(3)]
    killing = asyncio.gather(
        keep_killing(RELAY, arguments, chances[1]), keep_killing(WORKER, arguments, chances[2])
    )
    kept = await write_orders(database, chances[0], killing)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(AsyncClient(server.address))
        for text in (RELAY, WORKER):
            await stack.enter_async_context(program(text, *arguments))
        # Not before nothing is left to be done: what would come twice is there by then.
        while await left(database, client, len(kept)):  # noqa: ASYNC110  # polled
            await asyncio.sleep(0.05)
    found = effects(database)
    assert set(found) == kept
    assert set(found.values()) == {1}


def effects(database: Database) -> Counter[int]:
    return Counter(number for (number,) in database.query("SELECT number FROM effects"))


async def left(database: Database, client: AsyncClient, wanted: int) -> int:
    """How much is still to be done: rows, unfinished jobs, and effects that are missing."""
    ((rows,),) = database.query("SELECT COUNT(*) FROM jobline_outbox")
    counts = (await client.queues.get(f"effects-{database.kind}")).counts
    unfinished = counts.ready + counts.active + counts.scheduled
    return int(rows) + unfinished + max(0, wanted - sum(effects(database).values()))
