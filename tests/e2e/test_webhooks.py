"""Webhooks over real servers and sockets: what is told, how it is signed, and what is not lost."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook as StandardWebhook

from jobline import (
    AsyncClient,
    EventKind,
    InvalidArgument,
    Webhook,
    WebhookExists,
    WebhookNotFound,
    WebhookOutcome,
)
from jobline.webhooks import verify
from jobline_server.testing import RunningServer, ServerProcess, running_server
from tests.e2e.webhook_receiver import Received, receiving, status

PRIVATE: dict[str, Any] = {"webhook_private_networks": True}


async def complete(client: AsyncClient, queue: str = "mail", **how: Any) -> int:
    """Pushes a job and completes it; returns its id."""
    pushed = await client.push(queue, b"x", **how)
    [job] = await client.pull(queue, wait=5)
    await client.ack(job)
    return pushed.id


async def until(client: AsyncClient, name: str, **wanted: int) -> Webhook:
    """Waits until a webhook has these counts."""
    async with asyncio.timeout(40):
        while True:
            found = await client.webhooks.get(name)
            if all(getattr(found, field) == count for field, count in wanted.items()):
                return found
            await asyncio.sleep(0.02)  # nothing tells of a count


async def tried(client: AsyncClient, name: str) -> None:
    """Waits until a webhook has been tried."""
    async with asyncio.timeout(40):
        while not [one async for one in client.webhooks.deliveries(name)]:  # noqa: ASYNC110
            await asyncio.sleep(0.02)  # nothing tells of a try


def of(received: list[Received], name: str) -> list[Received]:
    return [one for one in received if one.id.startswith(f"msg_{name}_")]


async def test_webhook_is_told_of_ends_and_signed() -> None:
    async with (
        running_server(**PRIVATE) as server,
        AsyncClient(server.address) as client,
        receiving() as receiver,
    ):
        made = await client.webhooks.create("billing", receiver.url)
        job_id = await complete(client, name="invoice")
        [one] = await receiver.wait(1)
        assert one.path == "/hook?a=b"
        assert one.headers["host"] == f"127.0.0.1:{receiver.port}"
        event: Any = StandardWebhook(made.secret).verify(one.body, one.headers)
        assert event == verify(made.secret, one.headers, one.body)
        assert event["type"] == "job.completed"
        assert event["data"]["job_id"] == job_id
        assert (event["data"]["queue"], event["data"]["name"]) == ("mail", "invoice")
        found = await until(client, "billing", delivered=1, pending=0)
        assert (found.failed, found.dropped, found.missed) == (0, 0, 0)
        [delivery] = [one async for one in client.webhooks.deliveries("billing")]
        assert (delivery.id, delivery.status) == (one.id, 200)
        assert delivery.outcome is WebhookOutcome.DELIVERED


async def test_secret_before_signs_too() -> None:
    async with (
        running_server(**PRIVATE) as server,
        AsyncClient(server.address) as client,
        receiving() as receiver,
    ):
        old = await client.webhooks.create("w", receiver.url)
        new = await client.webhooks.rotate_secret("w")
        assert new.secret != old.secret
        assert new.webhook.previous_secret_until is not None
        assert await client.webhooks.test("w")
        [one] = await receiver.wait(1)
        for secret in (old.secret, new.secret):
            assert verify(secret, one.headers, one.body)["type"] == "webhook.test"


async def test_filters() -> None:
    """By kind, queue, name and tag; what passes none is not told."""
    async with (
        running_server(**PRIVATE) as server,
        AsyncClient(server.address) as client,
        receiving() as receiver,
    ):
        await client.webhooks.create("kinds", receiver.url, events=["queue_paused"])
        await client.webhooks.create("queues", receiver.url, queue="ma?l*")
        await client.webhooks.create("names", receiver.url, names=["n"])
        await client.webhooks.create("tags", receiver.url, tags=["t", "u"])
        await complete(client, "mail-1", name="n")
        await complete(client, "other", tags=["u"])
        await client.queues.pause("other")
        await receiver.wait(4)
        await until(client, "kinds", delivered=1)
        told = {name: of(receiver.received, name) for name in ("kinds", "queues", "names", "tags")}
        assert {name: len(some) for name, some in told.items()} == dict.fromkeys(told, 1)
        assert told["kinds"][0].event["type"] == "queue.paused"
        queues = [told[name][0].event["data"]["queue"] for name in ("queues", "names", "tags")]
        assert queues == ["mail-1", "mail-1", "other"]


async def test_job_has_a_url_of_its_own() -> None:
    """In a lot, alone, and for each way to end; other jobs tell nobody."""
    async with (
        running_server(**PRIVATE) as server,
        AsyncClient(server.address) as client,
        receiving() as receiver,
    ):
        await complete(client)
        with pytest.raises(WebhookNotFound):
            await client.webhooks.get("_jobs")
        await complete(client, webhook=receiver.url)
        await client.push_many("mail", [b"1", b"2"], webhook=receiver.url)
        jobs = await client.pull("mail", max_jobs=2, wait=5)
        for job in jobs:
            await client.ack(job)
        waits = await client.push("mail", b"x", webhook=receiver.url, delay=600)
        await client.jobs.cancel(waits.id)
        received = await receiver.wait(4)
        types = sorted(one.event["type"] for one in received)
        assert types == ["job.cancelled", *["job.completed"] * 3]
        assert len({one.id for one in received}) == 4
        secret = (await client.webhooks.rotate_secret("_jobs")).secret
        await complete(client, webhook=receiver.url)
        last = (await receiver.wait(5))[-1]
        assert verify(secret, last.headers, last.body)
        await until(client, "_jobs", delivered=5)


async def test_slow_receiver_holds_up_nobody() -> None:
    """Neither jobs nor other webhooks."""
    async with (
        running_server(**PRIVATE) as server,
        AsyncClient(server.address) as client,
        receiving() as slow,
        receiving() as fast,
    ):
        slow.hold.clear()
        await client.webhooks.create("slow", slow.url)
        await client.webhooks.create("fast", fast.url)
        for _ in range(10):
            await complete(client)
        await fast.wait(10)
        await until(client, "fast", delivered=10)
        assert (await client.webhooks.get("slow")).delivered == 0
        slow.hold.set()
        await until(client, "slow", delivered=10)


async def test_gone_receiver_disables_its_webhook() -> None:
    async with (
        running_server(**PRIVATE) as server,
        AsyncClient(server.address) as client,
        receiving() as receiver,
    ):
        receiver.answers = [status(410)]
        await client.webhooks.create("w", receiver.url)
        await complete(client)
        found = await until(client, "w", failed=1)
        assert found.settings.disabled
        assert "410" in found.disabled_reason
        receiver.answers = [status(200)]
        await client.webhooks.update("w", disabled=False)
        await client.webhooks.test("w")
        await receiver.wait(2)
        assert [one.event["type"] for one in receiver.received] == ["job.completed", "webhook.test"]


async def test_private_address_is_not_called_by_default() -> None:
    """Nor is any other that is not public; the job goes on."""
    async with (
        running_server() as server,
        AsyncClient(server.address) as client,
        receiving() as receiver,
    ):
        await client.webhooks.create("w", receiver.url)
        await complete(client)
        await until(client, "w", failed=1, pending=0)
        [delivery] = [one async for one in client.webhooks.deliveries("w")]
        assert delivery.outcome is WebhookOutcome.FAILED
        assert "not public" in delivery.error
        assert receiver.received == []


async def test_tries_go_on_after_a_kill(tmp_path: Path) -> None:
    """With the same `webhook-id`; settings, secret, counts and tries are there again."""
    async with receiving() as receiver:
        receiver.answers = [status(503), status(200)]
        server = ServerProcess(tmp_path / "data", webhook_private_networks=True)
        await server.start()
        async with AsyncClient(server.address) as client:
            made = await client.webhooks.create("w", receiver.url, events=["completed"])
            await complete(client)
            await tried(client, "w")
        await server.kill()
        await server.start()
        async with AsyncClient(server.address) as client:
            found = await until(client, "w", delivered=1, pending=0)
            assert found.settings.events == (EventKind.COMPLETED,)
            assert found.missed == 0
            tries = [one async for one in client.webhooks.deliveries("w")]
            assert [one.attempt for one in tries] == [2, 1]
            assert len({one.id for one in receiver.received}) == 1
            assert verify(made.secret, *_last(receiver.received))
            await complete(client)
            await until(client, "w", delivered=2)
        await server.terminate()


def _last(received: list[Received]) -> tuple[dict[str, str], bytes]:
    return received[-1].headers, received[-1].body


async def test_events_before_a_kill_are_told_after_it(tmp_path: Path) -> None:
    """Also those that nobody had read when the process was killed."""
    async with receiving() as receiver:
        server = ServerProcess(tmp_path / "data", webhook_private_networks=True)
        await server.start()
        async with AsyncClient(server.address) as client:
            await client.webhooks.create("w", receiver.url)
            ids = [await complete(client) for _ in range(5)]
        await server.kill()
        await server.start()
        async with AsyncClient(server.address) as client:
            while {one.event["data"]["job_id"] for one in receiver.received} < {*ids}:
                await receiver.wait(len(receiver.received) + 1)
            assert (await client.webhooks.get("w")).missed == 0
        await server.terminate()
    assert len({one.id for one in receiver.received}) == 5


async def test_nothing_is_missed_or_repeated_by_a_stop(tmp_path: Path) -> None:
    """What happened up to the stop is told once, after it or before."""
    async with receiving() as receiver:
        ids: list[int] = []
        for _ in range(3):
            async with (
                running_server(tmp_path, **PRIVATE) as server,
                AsyncClient(server.address) as client,
            ):
                if not ids:
                    await client.webhooks.create("w", receiver.url)
                ids.append(await complete(client))
        async with (
            running_server(tmp_path, **PRIVATE) as server,
            AsyncClient(server.address) as client,
        ):
            await receiver.wait(3)
            found = await until(client, "w", pending=0)
            assert found.missed == 0
    # Deliveries have no order: one cut off by a stop is tried again beside later ones.
    assert sorted(one.event["data"]["job_id"] for one in receiver.received) == sorted(ids)


async def test_queue_goes_with_its_webhooks(server: RunningServer, client: AsyncClient) -> None:
    await complete(client)
    await client.webhooks.create("one", "http://example.com/", queue="mail")
    await client.webhooks.create("in", incoming_queue="mail")
    await client.webhooks.create("all", "http://example.com/", queue="mai*")
    await client.queues.delete("mail")
    assert [one.name async for one in client.webhooks.list()] == ["all"]


async def test_mistakes_are_refused(server: RunningServer, client: AsyncClient) -> None:
    create = client.webhooks.create
    wrong: dict[str, dict[str, Any]] = {
        "settings.url": {"url": "ftp://x"},
        "settings.events[0]": {"url": "http://x", "events": ["webhook_failed"]},
        "settings.queue": {"incoming_queue": "q", "queue": "x"},
        "secret": {"url": "http://x", "secret": "short"},
    }
    for field, how in wrong.items():
        with pytest.raises(InvalidArgument) as caught:
            await create("w", **how)
        assert caught.value.field == field
    await create("w", "http://x")
    with pytest.raises(WebhookExists):
        await create("w", "http://x")
    with pytest.raises(WebhookNotFound):
        await client.webhooks.get("none")
    await create("in", incoming_queue="q")
    with pytest.raises(InvalidArgument):
        await client.webhooks.test("in")
