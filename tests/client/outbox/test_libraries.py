"""The same tables by SQLAlchemy and by Django."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jobline import InvalidArgument
from jobline.outbox import Outbox, Relay, fence
from jobline.testing import make_context
from tests.client.live.either import in_thread

OUTBOX = Outbox()
CLIENT = Path(__file__).parents[3] / "clients" / "python"


async def test_sqlalchemy(database, client):
    """A Session and a Connection; its engine is what a relay connects by."""
    sqlalchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    orm = pytest.importorskip("sqlalchemy.orm")
    engine = sqlalchemy.create_engine(database.url)
    queue = f"alchemy-{database.kind}"
    with orm.Session(engine) as session, session.begin():
        session.execute(sqlalchemy.text("INSERT INTO effects VALUES (1)"))
        OUTBOX.push(session, queue, {"by": "session"})
        assert fence(session, make_context(id=1)) is True
    with engine.connect() as connection:
        OUTBOX.push(connection, queue, {"by": "nobody"})
        connection.rollback()
    with engine.begin() as connection:
        OUTBOX.push(connection, queue, {"by": "connection"})
        assert fence(connection, make_context(id=1)) is False
        assert OUTBOX.stats(connection).waiting == 2
    relay = Relay(engine.connect, client)
    assert (await in_thread(relay.run_once)).pushed == 2
    relay.close()
    with engine.connect() as connection:
        assert OUTBOX.stats(connection).waiting == 0
    engine.dispose()


async def test_sqlalchemy_knows_the_tables(database):
    """As `create_all` and Alembic want them: the same as those of `create`."""
    sqlalchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    from jobline.outbox.sqlalchemy import fence_table, outbox_table  # noqa: PLC0415  # as said

    engine = sqlalchemy.create_engine(database.url)
    found = sqlalchemy.MetaData()
    found.reflect(engine, only=["jobline_outbox", "jobline_fence"])
    by_hand = indexes_of(sqlalchemy.inspect(engine), database.kind)
    declared = sqlalchemy.MetaData()
    for table in (outbox_table(declared), fence_table(declared)):
        real = found.tables[table.name]
        assert [column.name for column in table.columns] == list(real.columns.keys())
        assert [column.nullable for column in table.columns] == [
            column.nullable for column in real.columns
        ]
        assert list(table.primary_key.columns.keys()) == list(real.primary_key.columns.keys())
    declared.drop_all(engine)
    declared.create_all(engine)
    assert indexes_of(sqlalchemy.inspect(engine), database.kind) == by_hand
    assert list(by_hand) == ["jobline_outbox_failed", "jobline_outbox_queues"]
    engine.dispose()


def indexes_of(inspector, kind):
    """Columns and condition, by name."""
    return {
        one["name"]: (one["column_names"], str(one["dialect_options"][f"{kind}_where"]))
        for one in sorted(inspector.get_indexes("jobline_outbox"), key=lambda one: one["name"])
    }


async def test_an_async_session_is_run_in_step(database, client):
    """Awaited libraries are told how."""
    asyncio_of = pytest.importorskip("sqlalchemy.ext.asyncio")
    if database.kind == "sqlite":
        pytest.importorskip("aiosqlite")
    url = database.url.replace("sqlite:", "sqlite+aiosqlite:")
    engine = asyncio_of.create_async_engine(url)
    async with asyncio_of.AsyncSession(engine) as session, session.begin():
        with pytest.raises(InvalidArgument, match="run_sync"):
            OUTBOX.push(session, "awaited", 1)
        await session.run_sync(lambda tx: OUTBOX.push(tx, "awaited", 1))
    await engine.dispose()
    with database.transaction() as tx:
        assert OUTBOX.stats(tx).waiting == 1


async def test_an_awaited_driver_runs_the_statement(database):
    """With the parameters beside it."""
    if database.kind == "sqlite":
        aiosqlite = pytest.importorskip("aiosqlite")
        statement, parameters = OUTBOX.statement("awaited", {"a": 1})
        async with aiosqlite.connect(database.target) as connection:
            await connection.execute(statement.replace("%s", "?"), parameters)
            await connection.commit()
    else:
        psycopg = pytest.importorskip("psycopg")
        async with await psycopg.AsyncConnection.connect(database.target) as connection:
            with pytest.raises(InvalidArgument, match="statement"):
                OUTBOX.push(connection, "awaited", 1)
            await connection.execute(*OUTBOX.statement("awaited", {"a": 1}))
    with database.transaction() as tx:
        assert OUTBOX.stats(tx).waiting == 1


PROJECT = """
import os, sys
import django
from django.conf import settings

kind, target = sys.argv.pop(1), sys.argv.pop(1)
if kind == "sqlite":
    found = {"ENGINE": "django.db.backends.sqlite3", "NAME": target}
else:
    parts = dict(part.split("=") for part in target.split())
    found = {"ENGINE": "django.db.backends.postgresql", "NAME": parts["dbname"],
             "USER": parts["user"], "HOST": parts["host"]}
settings.configure(DATABASES={"default": found}, INSTALLED_APPS=["jobline.outbox.django"])
django.setup()

if sys.argv[1] == "write":
    from django.db import connection, transaction
    from jobline.errors import InvalidArgument
    from jobline.outbox import Outbox, fence
    from jobline.testing import make_context
    outbox = Outbox()
    with transaction.atomic():
        outbox.push(connection, "django", {"by": "django"})
        assert fence(connection, make_context(id=1))
    try:
        with transaction.atomic():
            outbox.push(connection, "django", 2)
            raise KeyError
    except KeyError:
        pass
    try:
        outbox.push(connection, "django", 3)
    except InvalidArgument as error:
        print(error)
else:
    from django.core.management import execute_from_command_line
    execute_from_command_line(["manage.py", *sys.argv[1:]])
"""


async def test_django(database, server, client):
    """Its migration makes the tables, and its command runs the relay until SIGTERM."""
    pytest.importorskip("django", reason="Django is not installed")
    with database.transaction() as tx:
        tx.cursor().execute("DROP TABLE jobline_outbox")
        tx.cursor().execute("DROP TABLE jobline_fence")
    environment = {**os.environ, "PYTHONPATH": str(CLIENT)}
    base = [sys.executable, "-c", PROJECT, database.kind, database.target]

    def manage(*arguments: str) -> str:
        done = subprocess.run(
            [*base, *arguments], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    await in_thread(manage, "migrate")
    assert "belongs into a transaction" in await in_thread(manage, "write")
    before = await in_thread(pushed_total, client)
    process = await asyncio.create_subprocess_exec(
        *(*base, "jobline_relay", "--server", server.address, "--poll", "10ms"),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
    )
    while (await in_thread(pushed_total, client)) < before + 1:
        pass
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0
    with database.transaction() as tx:
        assert OUTBOX.stats(tx).waiting == 0
    await in_thread(manage, "migrate", "jobline_outbox", "0001")
    with database.transaction() as tx:
        for index in ("queues", "failed"):  # as the first version had none
            tx.cursor().execute(f"DROP INDEX jobline_outbox_{index}")
        tx.cursor().execute("CREATE INDEX jobline_outbox_waiting ON jobline_outbox (id)")
    await in_thread(manage, "migrate")
    with database.transaction() as tx:
        for index in ("queues", "failed"):
            tx.cursor().execute(f"DROP INDEX jobline_outbox_{index}")
        with pytest.raises(Exception, match=r"jobline_outbox_waiting"):  # as each driver has it
            tx.cursor().execute("DROP INDEX jobline_outbox_waiting")
        tx.rollback()
    await in_thread(manage, "migrate", "jobline_outbox", "zero")


def pushed_total(client) -> int:
    found = list(client.jobs.list(queue="django"))
    return len(found)
