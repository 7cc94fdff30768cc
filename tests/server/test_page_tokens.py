"""Page tokens open the list they came from, and no other."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from tests.server.calling import PACKAGE, BytesChannel, call, encoded, method_of
from tests.server.conftest import connect
from tests.server.world import fill

# Lists, and a filter of each that leaves more than one entry.
LISTS: dict[str, dict[str, Any]] = {
    "QueueService/ListQueues": {"namePrefix": "k"},
    "JobAdminService/ListJobs": {"filter": {"queue": "known", "headers": {"a": "1", "b": "2"}}},
    "DeadLetterService/ListDeadJobs": {"filter": {"queue": "known"}},
    "AdminService/ListWorkers": {},
    "AdminService/ListHandlers": {},
    "AdminService/ListOperations": {},
}


async def page_of(channel: BytesChannel, rpc: str, asked: dict[str, Any]) -> Any:
    """One page."""
    reply = await channel.unary_unary(f"/{PACKAGE}.{rpc}")(encoded(rpc, asked))
    return GetMessageClass(method_of(rpc).output_type).FromString(reply)


async def push(channel: BytesChannel, **push: Any) -> None:
    """Some jobs."""
    await channel.unary_unary(f"/{PACKAGE}.JobService/Push")(encoded("JobService/Push", push))


@pytest.fixture
async def several(server: Any) -> Any:
    """A channel to a server with several of everything that the lists below show."""
    async with connect(server.address) as channel:
        await fill(channel)
        headers = {"headers": {"a": "1", "b": "2"}}
        await push(channel, queue="known", options=headers, payloads=["eA=="] * 3)
        for queue in ("k2", "k3"):
            await push(channel, queue=queue, payloads=["eA=="])
        yield channel


@pytest.mark.parametrize("rpc", ["QueueService/ListQueues", "JobAdminService/ListJobs"])
async def test_a_token_goes_on_with_its_list(several: BytesChannel, rpc: str) -> None:
    """Trial D11: page by page, of any size."""
    asked = LISTS[rpc]
    first = await page_of(several, rpc, asked | {"pageSize": 1})
    assert first.next_page_token

    second = await page_of(several, rpc, asked | {"pageToken": first.next_page_token})

    assert not second.next_page_token
    listed = [entry.name if "Queues" in rpc else entry.id for entry in entries(first, second)]
    assert listed == sorted(set(listed))
    assert len(listed) == 3


def entries(*pages: Any) -> list[Any]:
    """Of all pages."""
    field = next(name for name in ("jobs", "queues") if name in pages[0].DESCRIPTOR.fields_by_name)
    return [entry for page in pages for entry in getattr(page, field)]


@pytest.mark.parametrize("other", LISTS)
@pytest.mark.parametrize("rpc", ["QueueService/ListQueues", "JobAdminService/ListJobs"])
async def test_a_foreign_token_is_refused(several: BytesChannel, rpc: str, other: str) -> None:
    """Trial D11: one of another list, or of the same one with another filter."""
    page = await page_of(several, rpc, LISTS[rpc] | {"pageSize": 1})
    asked = {} if other == rpc else LISTS[other]

    refusal = await call(
        several, other, [encoded(other, asked | {"pageToken": page.next_page_token})]
    )

    assert refusal is not None
    said = (refusal.code, refusal.reason, refusal.field)
    assert said == ("INVALID_ARGUMENT", "INVALID_PAGE_TOKEN", "page_token")


async def test_a_token_of_another_order_is_refused(several: BytesChannel) -> None:
    """A place in one order says nothing in another."""
    rpc = "QueueService/ListQueues"
    page = await page_of(several, rpc, {"pageSize": 1, "orderBy": "activity desc"})
    for order in ("name", ""):
        asked = {"pageToken": page.next_page_token, "orderBy": order}
        refusal = await call(several, rpc, [encoded(rpc, asked)])
        assert refusal is not None
        assert (refusal.reason, refusal.field) == ("INVALID_PAGE_TOKEN", "page_token")


async def test_a_bare_place_is_no_token(several: aio.Channel) -> None:
    """Trial D11: a token whose digest was left out is of no list."""
    refusal = await call(
        several, "QueueService/ListQueues", [encoded("QueueService/ListQueues", {"pageToken": "k"})]
    )

    assert refusal is not None
    assert refusal.reason == "INVALID_PAGE_TOKEN"
