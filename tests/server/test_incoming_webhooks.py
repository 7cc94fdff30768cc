"""Incoming webhooks: a signed call makes a job, once; others are refused with a clear status."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import httpx
import pytest
from standardwebhooks.webhooks import Webhook as StandardWebhook

from jobline import AsyncClient
from jobline_server.runtime.health import Health
from jobline_server.testing import RunningServer, running_server
from tests.server.http_calls import client_of

BODY = '{"type": "invoice.paid"}'


class Source(NamedTuple):
    """Somebody who sends webhooks to a queue."""

    http: httpx.AsyncClient
    client: AsyncClient
    server: RunningServer
    secret: str

    def signed(
        self, message_id: str = "msg_1", body: str = BODY, *, age_seconds: float = 0
    ) -> dict[str, str]:
        at = datetime.now(UTC) - timedelta(seconds=age_seconds)
        return {
            "webhook-id": message_id,
            "webhook-timestamp": str(int(at.timestamp())),
            "webhook-signature": StandardWebhook(self.secret).sign(message_id, at, body),
            "content-type": "application/json; charset=utf-8",
        }

    async def send(
        self, headers: dict[str, str], body: str | bytes = BODY, path: str = "/hooks/mail"
    ) -> httpx.Response:
        return await self.http.post(path, content=body, headers=headers)

    async def jobs(self) -> list[Any]:
        return list(await self.client.pull("mail", max_jobs=10, wait=0))


@pytest.fixture
async def source(server: RunningServer) -> AsyncIterator[Source]:
    async with client_of(server) as http, AsyncClient(server.address) as client:
        made = await client.webhooks.create("in", incoming_queue="mail")
        yield Source(http, client, server, made.secret)


def reason_of(reply: httpx.Response) -> str:
    details = reply.json().get("details", [])
    return next((str(one["debug"]["reason"]) for one in details if "reason" in one["debug"]), "")


async def test_signed_call_makes_a_job_once(source: Source) -> None:
    reply = await source.send(source.signed())
    assert (reply.status_code, reply.headers["content-type"]) == (200, "application/json")
    again = await source.send(source.signed())
    assert reply.json() == {"job_id": again.json()["job_id"], "duplicate": False}
    assert again.json()["duplicate"]
    [job] = await source.jobs()
    assert (job.id, job.payload) == (reply.json()["job_id"], BODY.encode())
    assert job.content_type == "application/json; charset=utf-8"


async def test_both_secrets_are_accepted_after_a_rotation(source: Source) -> None:
    new = await source.client.webhooks.rotate_secret("in")
    for message_id, secret in (("a", source.secret), ("b", new.secret)):
        reply = await source.send(source._replace(secret=secret).signed(message_id))
        assert reply.status_code == 200
    assert len(await source.jobs()) == 2


async def test_what_is_not_signed_is_refused(source: Source) -> None:
    other = source._replace(secret="whsec_" + "A" * 32)
    good = source.signed()
    for headers, body in [
        ({}, BODY),
        (good, BODY + " "),
        (good | {"webhook-id": "msg_2"}, BODY),
        (other.signed(), BODY),
        (source.signed(age_seconds=310), BODY),
        (source.signed(age_seconds=-310), BODY),
    ]:
        reply = await source.send(headers, body)
        assert (reply.status_code, reason_of(reply)) == (401, "BAD_SIGNATURE")
        assert source.secret not in reply.text
    assert await source.jobs() == []


async def test_old_message_is_accepted_for_five_minutes(source: Source) -> None:
    assert (await source.send(source.signed(age_seconds=290))).status_code == 200


async def test_there_is_no_webhook_of_other_queues(source: Source) -> None:
    """Names that are none say the same as those of queues without one."""
    for path in ("/hooks/other", "/hooks/", "/hooks/_x", "/hooks/a/b", "/hooks/mail/"):
        reply = await source.send(source.signed(), path=path)
        assert (reply.status_code, reason_of(reply)) == (404, "WEBHOOK_NOT_FOUND")
    await source.client.webhooks.update("in", disabled=True)
    assert (await source.send(source.signed())).status_code == 404
    await source.client.webhooks.delete("in")
    assert (await source.send(source.signed())).status_code == 404


async def test_other_verbs_and_encodings_are_refused(source: Source) -> None:
    reply = await source.http.get("/hooks/mail")
    assert (reply.status_code, reply.headers["allow"]) == (405, "POST")
    reply = await source.send(source.signed() | {"content-encoding": "gzip"})
    assert reply.status_code == 415
    assert await source.jobs() == []


async def test_id_and_content_type_are_bounded(source: Source) -> None:
    reply = await source.send(source.signed("x" * 257))
    assert (reply.status_code, reason_of(reply)) == (400, "INVALID_FIELD")
    reply = await source.send(source.signed() | {"content-type": "x" * 2_000})
    assert reply.status_code == 400
    assert await source.jobs() == []


async def test_same_id_with_another_body_is_refused(source: Source) -> None:
    assert (await source.send(source.signed())).status_code == 200
    reply = await source.send(source.signed(body="{}"), "{}")
    assert (reply.status_code, reason_of(reply)) == (409, "IDEMPOTENCY_MISMATCH")


async def test_body_that_is_too_large_is_refused(transport: str) -> None:
    async with (
        running_server(transport=transport, max_payload_bytes=1_024) as server,
        client_of(server) as http,
        AsyncClient(server.address) as client,
    ):
        made = await client.webhooks.create("in", incoming_queue="mail")
        source, body = Source(http, client, server, made.secret), "x" * 1_025
        reply = await source.send(source.signed(body=body), body)
        assert (reply.status_code, reason_of(reply)) == (413, "TOO_LARGE")
        reply = await source.send(source.signed(body=body[1:]), body[1:])
        assert reply.status_code == 200

        async def pieces() -> AsyncIterator[bytes]:
            yield b"x" * 1_025

        reply = await http.post("/hooks/mail", content=pieces(), headers=source.signed(body=body))
        assert reply.status_code == 413


async def test_full_queue_says_when_to_come_again(source: Source) -> None:
    await source.client.queues.update("mail", max_waiting=1)
    assert (await source.send(source.signed("a"))).status_code == 200
    reply = await source.send(source.signed("b"))
    assert (reply.status_code, reason_of(reply)) == (429, "QUEUE_FULL")
    assert int(reply.headers["retry-after"]) >= 1


async def test_lost_shard_is_said(source: Source) -> None:
    """The sender is to try again: the webhooks are not served here."""
    slots = source.server.runtime.core.slots
    headers = source.signed()
    slots.close(slots[0], Health.FENCED, "lost")
    reply = await source.send(headers)
    assert (reply.status_code, reason_of(reply)) == (503, "SHARD_UNAVAILABLE")
    assert reply.headers["retry-after"] == "1"
