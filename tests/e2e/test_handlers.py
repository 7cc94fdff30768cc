"""Handlers over a socket: announced by workers, listed, generated from, and checked against."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from jobline import ANY, AsyncClient, HandlerSummary, JobState, PayloadMisfit, Worker
from jobline_server.testing import RunningServer, running_server


@dataclass
class Mail:
    to: str
    copies: int = 0


@asynccontextmanager
async def at_work(worker: Worker) -> AsyncIterator[None]:
    """Runs a worker, which is connected."""
    task = asyncio.create_task(worker.serve())
    await worker.wait_connected()
    yield
    worker.stop()
    await task


def mailer(address: str, version: str = "1") -> Worker:
    """A worker that sends mail, and takes any other work of its queue."""
    worker = Worker(address, version=version)

    @worker.handler("mail", "send")
    async def send(mail: Mail) -> str:
        return mail.to

    @worker.handler("mail", ANY)
    async def other(payload: object) -> None: ...

    return worker


async def handlers_of(client: AsyncClient, queue: str = "") -> list[HandlerSummary]:
    return [handler async for handler in client.admin.handlers(queue)]


async def test_handlers_are_listed_with_their_schemas_while_workers_are_connected(
    server: RunningServer, client: AsyncClient
) -> None:
    async with at_work(mailer(server.address)), at_work(mailer(server.address, "2")):
        send, anything = await handlers_of(client, "mail")
        assert (send.name, send.any_name, send.workers, send.differs) == (
            "send",
            False,
            2,
            ("version",),
        )
        assert '"title":"Mail"' in send.variants[0].payload_schema
        assert send.variants[0].result_schema == '{"type":"string"}'
        assert (anything.name, anything.any_name) == ("", True)
        assert anything.variants[0].payload_schema == ""
        assert await handlers_of(client, "other") == []
    assert await handlers_of(client) == []


async def test_worker_takes_any_name_in_one_queue_and_some_in_another(
    server: RunningServer, client: AsyncClient
) -> None:
    worker = mailer(server.address)

    @worker.handler("sms", "send")
    async def sms(payload: object) -> None: ...

    taken = await client.push("mail", {"x": 1}, name="unheard of")
    left = await client.push("sms", {"x": 1}, name="unheard of")
    async with at_work(worker):
        assert (await client.wait_one(taken.id, timeout=20)).state is JobState.COMPLETED
        assert (await client.jobs.get(left.id)).state is JobState.READY


async def test_payloads_that_do_not_fit_are_refused_also_after_a_restart(tmp_path: Path) -> None:
    """Others of the same call of the client are stored; nothing is checked without a worker."""
    pytest.importorskip("jsonschema_rs", reason="the library that checks is not installed")
    async with running_server(tmp_path) as server, AsyncClient(server.address) as client:
        await client.queues.update("mail", check_payloads=True)
        await client.push("mail", {"too": "early"}, name="send")
    async with running_server(tmp_path) as server, AsyncClient(server.address) as client:
        assert (await client.queues.get("mail")).settings.check_payloads
        async with at_work(mailer(server.address)):
            outcomes = await asyncio.gather(
                client.push("mail", {"to": "a@b.c", "unknown": "key"}, name="send"),
                client.push("mail", {"to": 7}, name="send"),
                client.push("mail", "what has no schema", name="other"),
                return_exceptions=True,
            )
            assert isinstance(outcomes[1], PayloadMisfit)
            assert "/properties/to/type" in str(outcomes[1])
            assert [isinstance(one, BaseException) for one in outcomes] == [False, True, False]
