"""The relay: what it does when the server refuses, or is away, or when it has died before."""

from __future__ import annotations

import asyncio
import logging
import os

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from jobline import Client, NotConnected, QueueFull
from jobline.codec import Codec, KeyMap
from jobline.outbox import Outbox, Relay
from jobline.v1 import job_pb2
from jobline_server.testing import ServerProcess
from tests.client.live.either import in_thread
from tests.client.live.working import said

OUTBOX = Outbox()


def written(database, queue, *payloads, **how):
    with database.transaction() as tx:
        return [OUTBOX.push(tx, queue, payload, **how) for payload in payloads]


def stats(database):
    with database.transaction() as tx:
        return OUTBOX.stats(tx)


def rows_of(database):
    return database.query("SELECT id, queue, job, size, written_at_ms FROM jobline_outbox")


def put_back(database, rows):
    """As if the relay had died before its commit."""
    mark = "?" if database.kind == "sqlite" else "%s"
    with database.transaction() as tx:
        tx.cursor().executemany(
            "INSERT INTO jobline_outbox (id, queue, job, size, written_at_ms)"
            f" VALUES ({', '.join([mark] * 5)})",
            rows,
        )


async def emptied(database):
    """Waits until all rows are pushed: a table tells nobody of itself."""
    while stats(database).waiting:  # noqa: ASYNC110  # as said
        await asyncio.sleep(0.01)


async def test_a_row_whose_deletion_was_lost_is_pushed_once(database, client):
    """The server answers with the job that it has."""
    queue = f"once-{database.kind}"
    written(database, queue, 1, 2)
    rows = rows_of(database)
    relay = Relay(database.connect, client)
    assert (await in_thread(relay.run_once)).repeated == 0
    put_back(database, rows)
    done = await in_thread(relay.run_once)
    relay.close()
    assert (done.pushed, done.repeated, stats(database).waiting) == (2, 2, 0)
    assert (await in_thread(client.queues.get, queue)).pushed_total == 2


async def test_a_row_that_was_stored_under_another_key_of_the_codec_is_a_repeat(database, server):
    """The same row, sealed anew, is another payload; a unique key that is held is a refusal."""
    queue, keys = f"sealed-{database.kind}", {"old": os.urandom(32), "new": os.urandom(32)}
    current = "old"
    with Client(server.address, codec=Codec(KeyMap(keys, current=lambda _: current))) as client:
        relay = Relay(database.connect, client)
        written(database, queue, 1, 2)
        written(database, queue, 3, unique_key="u", unique_mode="reject")
        rows = rows_of(database)
        assert (await in_thread(relay.run_once)).pushed == 3
        put_back(database, rows)
        written(database, queue, 4, unique_key="u", unique_mode="reject")
        current = "new"
        done = await in_thread(relay.run_once)
        relay.close()
        assert (done.pushed, done.repeated, done.failed) == (3, 3, 1)
        with database.transaction() as tx:
            (row,) = OUTBOX.failed(tx)
        assert "UniqueKeyHeld" in row.error
        assert stats(database).waiting == 0
        assert (await in_thread(client.queues.get, queue)).pushed_total == 3


async def test_a_job_that_is_refused_for_good_stands_aside(database, client, caplog):
    """The others go on; it can be looked at, and tried again."""
    queue = f"refused-{database.kind}"
    written(database, queue, 1)
    (bad,) = written(database, queue, 2, limiters=[f"missing-{database.kind}"])
    written(database, queue, 3)
    relay = Relay(database.connect, client)
    done = await in_thread(relay.run_once)
    assert (done.pushed, done.failed) == (2, 1)
    assert "is refused" in caplog.text
    with database.transaction() as tx:
        (row,) = OUTBOX.failed(tx)
        assert (row.id, row.queue) == (bad, queue)
        assert "LimiterNotFound" in row.error
        found = OUTBOX.stats(tx)
        assert (found.waiting, found.failed, found.oldest) == (0, 1, None)
    assert (await in_thread(relay.run_once)).total == 0
    await in_thread(lambda: client.limiters.upsert(f"missing-{database.kind}", concurrency=1))
    with database.transaction() as tx:
        assert OUTBOX.retry_failed(tx) == 1
    assert (await in_thread(relay.run_once)).pushed == 1
    relay.close()


@pytest.mark.parametrize(
    "job",
    [
        b"\xff\xff\xff",
        job_pb2.NewJob(run_at=Timestamp(seconds=400_000_000_000)).SerializeToString(),
    ],
    ids=["no-message", "no-time"],
)
async def test_a_row_that_cannot_be_read_stands_aside(database, client, job):
    """It stops neither its queue nor others."""
    queue = f"unreadable-{database.kind}-{len(job)}"
    (bad,) = written(database, queue, 1)
    written(database, queue, 2)
    written(database, f"other-{queue}", 3)
    mark = "?" if database.kind == "sqlite" else "%s"
    with database.transaction() as tx:
        tx.cursor().execute(f"UPDATE jobline_outbox SET job = {mark} WHERE id = {mark}", (job, bad))
    relay = Relay(database.connect, client)
    done = await in_thread(relay.run_once)
    relay.close()
    assert (done.pushed, done.failed) == (2, 1)
    with database.transaction() as tx:
        (row,) = OUTBOX.failed(tx)
    assert row.id == bad
    assert "cannot be read" in row.error


async def test_a_queue_that_is_full_holds_up_no_other(database, client, caplog):
    """Its rows wait, and come when there is room."""
    full, free = f"full-{database.kind}", f"free-{database.kind}"
    await in_thread(lambda: client.queues.update(full, max_waiting=1))
    await in_thread(client.push, full, b"")
    written(database, full, *range(20))
    written(database, free, *range(5))
    relay = Relay(database.connect, client, batch=10)
    with caplog.at_level(logging.WARNING):
        assert (await in_thread(relay.run_once)).total == 0
    assert f"wait for queue {full}" in caplog.text
    assert (await in_thread(relay.run_once)).pushed == 5
    assert stats(database).waiting == 20
    await in_thread(lambda: client.queues.update(full, max_waiting=100))
    with relay.running():
        await emptied(database)
    assert (await in_thread(client.queues.get, full)).pushed_total == 21


async def test_rows_of_other_queues_do_not_wait_for_the_next_look(database, client):
    """A batch that is all of a full queue leaves the look at once to others: otherwise the queue is
    tried again by the time of the next look, and holds them up for good.
    """
    full, free = f"front-{database.kind}", f"behind-{database.kind}"
    await in_thread(lambda: client.queues.update(full, max_waiting=1))
    await in_thread(client.push, full, b"")
    written(database, full, *range(20))
    written(database, free, *range(5))
    with Relay(database.connect, client, batch=10, poll="1h").running():
        async with asyncio.timeout(60):
            while stats(database).waiting > 20:  # noqa: ASYNC110  # a table tells nobody of itself
                await asyncio.sleep(0.01)


async def test_a_server_that_is_away_is_waited_for(database, tmp_path, caplog):
    """And found again, without a word from the program."""
    written(database, "away", 1, 2, 3)
    server = ServerProcess(tmp_path / "data")
    await server.start()
    await server.kill()
    with Client(server.address) as client:
        relay = Relay(database.connect, client, poll=0.01)
        with pytest.raises(NotConnected):
            await in_thread(relay.run_once)
        assert stats(database).waiting == 3
        with relay.running():
            await said(caplog, "jobline.outbox", "the outbox waits")
            try:
                await server.start()
                await emptied(database)
            finally:
                await server.kill()


async def test_a_database_that_is_away_is_waited_for(database, client, caplog):
    """With a new connection each time."""
    written(database, f"db-{database.kind}", 1)
    tries = 0

    def connect():
        nonlocal tries
        tries += 1
        if tries < 3:
            raise OSError("the database is away")
        connection = database.connect()
        if tries == 3:
            connection.close()
        return connection

    with Relay(connect, client, poll=0.01).running():
        await emptied(database)
    assert tries == 4


def test_a_refusal_of_the_queue_is_one():
    """It is no refusal of a job, which would stand aside for good."""
    assert QueueFull("full").retryable
