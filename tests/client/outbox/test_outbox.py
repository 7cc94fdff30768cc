"""Jobs in the user's transaction: written with it, gone with it, and pushed as they were meant."""

from __future__ import annotations

import json
import sqlite3
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from jobline import InvalidArgument, JobOptions, job
from jobline.outbox import Outbox, Relay
from jobline.outbox._ids import new_id
from tests.client.live.either import in_thread

OUTBOX = Outbox()


@job(queue="images", max_attempts=7)
def resize(path: str, width: int = 100) -> None:
    return None


def waiting(database) -> int:
    with database.transaction() as tx:
        return OUTBOX.stats(tx).waiting


async def relayed(database, client, outbox=OUTBOX):
    """Pushes what there is, in a thread: the server runs in this loop."""
    relay = Relay(database.connect, client, outbox=outbox)
    try:
        return await in_thread(relay.run_once)
    finally:
        relay.close()


async def jobs(client, queue):
    return await in_thread(lambda: list(client.jobs.list(queue=queue, include_payloads=True)))


async def test_a_job_is_there_if_the_transaction_commits(database, client):
    """And gone with it if it does not."""
    queue = f"mail-{database.kind}"
    connection = database.connect()
    connection.cursor().execute("INSERT INTO effects VALUES (1)")
    id_ = OUTBOX.push(connection, queue, {"to": "a@b.c"}, priority=9, name="welcome")
    assert uuid.UUID(id_).version == 7
    connection.rollback()
    assert waiting(database) == 0
    kept = OUTBOX.push(connection, queue, {"to": "d@e.f"}, priority=9, name="welcome")
    assert waiting(database) == 0  # not yet committed
    connection.commit()
    connection.close()
    assert waiting(database) == 1
    done = await relayed(database, client)
    assert (done.pushed, done.repeated, done.failed, waiting(database)) == (1, 0, 0, 0)
    (found,) = await jobs(client, queue)
    assert (found.job_key, found.name, found.options.priority) == (kept, "welcome", 9)
    assert json.loads(found.payload) == {"to": "d@e.f"}
    assert found.options.content_type == "application/json"
    assert (await relayed(database, client)).total == 0


async def test_all_that_a_push_takes_is_kept(database, client):
    """Declared jobs, options, headers, unique keys, and times, which count from the writing."""
    before = datetime.now(UTC)
    later = before.replace(microsecond=0) + timedelta(days=2)
    with database.transaction() as tx:
        OUTBOX.push(tx, resize.with_options(group="g"), path="a.png", width=64, headers={"a": "1"})
        OUTBOX.push(tx, "raw", b"\0\xff", delay="1h", unique_key="u", options=JobOptions(cost=3))
        OUTBOX.push(tx.cursor(), "raw", run_at=later)
    await relayed(database, client)
    (image,) = (await jobs(client, "images"))[-1:]
    assert (json.loads(image.payload), image.name) == ({"path": "a.png", "width": 64}, "resize")
    assert (image.options.max_attempts, image.options.group) == (7, "g")
    assert image.options.headers == {"a": "1"}
    raw = {one.payload: one for one in await jobs(client, "raw")}
    assert raw[b"\0\xff"].options.cost == 3
    assert timedelta(minutes=59) < raw[b"\0\xff"].run_at - before < timedelta(minutes=61)
    assert raw[b""].run_at == later
    await in_thread(lambda: client.jobs.delete(queue="raw"))


async def test_rows_are_pushed_in_the_order_in_which_they_were_written(database, client):
    """Over several batches and queues."""
    queue = f"ordered-{database.kind}"
    with database.transaction() as tx:
        for number in range(50):
            OUTBOX.push(tx, queue, number)
            OUTBOX.push(tx, "others", number)
    relay = Relay(database.connect, client, batch=7)
    while (await in_thread(relay.run_once)).total:
        pass
    relay.close()
    found = sorted(await jobs(client, queue), key=lambda one: one.id)
    assert [int(one.payload) for one in found] == list(range(50))


def test_ids_grow_within_a_process():
    """Also where many are made in a millisecond."""
    ids = [new_id() for _ in range(10_000)]
    assert ids == sorted(set(ids))
    assert {uuid.UUID(one).version for one in ids} == {7}
    assert {uuid.UUID(one).variant for one in ids} == {uuid.RFC_4122}


def test_a_job_outside_of_a_transaction_is_refused(database):
    """On a connection that commits each statement, unless a transaction was begun by hand."""
    connection = database.connect()
    if database.kind == "sqlite":
        connection.isolation_level = None
    else:
        connection.autocommit = True
    with pytest.raises(InvalidArgument, match="belongs into a transaction"):
        OUTBOX.push(connection, "mail", 1)
    connection.cursor().execute("BEGIN")
    OUTBOX.push(connection, "mail", 1)
    connection.cursor().execute("ROLLBACK")
    connection.close()
    assert waiting(database) == 0


@pytest.mark.parametrize(
    ("arguments", "more", "said"),
    [
        (("mail", 1), {"job_key": "k"}, "the id of its row"),
        (("mail", 1), {"delay": 1, "run_at": datetime.now(UTC)}, "not both"),
        (("mail", object()), {}, "no JSON"),
        ((print, 1), {}, "a queue or a declared job"),
        (("mail", b"x" * (12 << 20)), {}, "at most 11 MiB"),
        ((resize,), {"path": 7}, "path: expected str"),
        (("mail", 1), {"ack_level": "memory"}, "ack_level"),
        (("mail", 1), {"run_at": datetime(2026, 1, 1)}, "no time zone"),  # noqa: DTZ001  # the mistake
    ],
)
def test_what_could_not_be_pushed_is_refused_where_it_is_written(arguments, more, said):
    """So that the transaction does not commit without its job."""
    connection = sqlite3.connect(":memory:")
    OUTBOX.create(connection)
    with pytest.raises((InvalidArgument, TypeError), match=said):
        OUTBOX.push(connection, *arguments, **more)
    assert OUTBOX.stats(connection).waiting == 0


def test_only_plain_names_of_tables_and_known_databases_are_taken():
    """The name becomes part of statements."""
    for table in ("a b", "x;drop", "", 'a"b', "a.b.c", "1a"):
        with pytest.raises(InvalidArgument, match="a plain name"):
            Outbox(table)
    assert "CREATE TABLE IF NOT EXISTS app.jobs" in Outbox("app.jobs").ddl("postgresql")
    with pytest.raises(InvalidArgument, match="sqlite and postgresql, not mysql"):
        Outbox().ddl("mysql")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(InvalidArgument, match="a connection of a database"):
        OUTBOX.push(object(), "mail", 1)
