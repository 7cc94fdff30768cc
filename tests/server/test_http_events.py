"""Events over HTTP: what a browser or curl reads, resumes and is refused."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import quote

import pytest
from google.protobuf.json_format import MessageToDict
from grpc import aio

from jobline.v1 import job_service_pb2
from jobline.v1.event_pb2 import Event
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.runtime.watch import feed, feed_reader, kept_batches
from jobline_server.testing import RunningServer, running_server
from tests.server.conftest import until
from tests.server.http_calls import call_json, client_of, refusal_of
from tests.server.sse import refused, watching

OURS = "https://app.example"


async def push(server: RunningServer, *payloads: str, queue: str = "mail") -> list[int]:
    """Pushes texts; their ids."""
    jobs = [{"text": payload} for payload in payloads]
    async with client_of(server) as client:
        reply = await call_json(client, "JobService/Push", {"queue": queue, "jobs": jobs})
    return list(map(int, reply["ids"]))


async def test_events_come_as_json_with_the_id_to_resume_after_them(server: RunningServer) -> None:
    async with watching(server, "events=pushed") as watcher:
        await watcher.begun()
        ids = await push(server, "a", "b", "c")
        found = await watcher.read(3)
    assert [int(event.data["jobId"]) for event in found] == ids
    assert {event.data["kind"] for event in found} == {"EVENT_KIND_PUSHED"}
    assert {event.data["queue"] for event in found} == {"mail"}
    assert {event.kind for event in found} == {"message"}
    assert len({event.id for event in found}) == 3
    assert watcher.reader.retry_ms == 1_000

    async with watching(server, "events=pushed", last_id=found[0].id) as again:
        assert [event.data["jobId"] for event in await again.read(2)] == list(map(str, ids[1:]))
    token = quote(found[1].id)
    async with watching(server, f"events=pushed&resume_token={token}") as by_url:
        assert [event.data["jobId"] for event in await by_url.read(1)] == [str(ids[2])]


async def test_events_are_those_of_watch(server: RunningServer, channel: aio.Channel) -> None:
    """Field for field, and each token resumes either."""
    jobs: Any = JobServiceStub(channel)
    calls = jobs.Watch(job_service_pb2.WatchRequest())
    first = await calls.read()
    assert not first.events
    async with watching(server) as watcher:
        await watcher.begun()
        await push(server, "a", "b")
        async with client_of(server) as client:
            pulled = await call_json(client, "JobService/Pull", {"queues": [{"queue": "mail"}]})
            done = {"ids": [pulled["jobs"][0]["id"]], "deliveries": [pulled["jobs"][0]["delivery"]]}
            await call_json(client, "JobService/Ack", done)
        over_http = await watcher.read(5)
    over_grpc: list[Event] = []
    while len(over_grpc) < 5:
        answer = await calls.read()
        over_grpc += answer.events
    calls.cancel()
    assert [event.data for event in over_http] == [MessageToDict(event) for event in over_grpc]
    resumed = jobs.Watch(job_service_pb2.WatchRequest(resume_token=over_http[3].id))
    await resumed.read()
    (last,) = (await resumed.read()).events
    assert MessageToDict(last) == over_http[4].data
    resumed.cancel()


async def test_filters_are_those_of_watch(server: RunningServer) -> None:
    """Queues and kinds with commas or several times; one job."""
    first = (await push(server, "x"))[0]
    async with (
        watching(server, "queue=mail,sms&events=pushed,completed") as queues,
        watching(server, "queue=sms&queue=fax&events=EVENT_KIND_PUSHED") as others,
        watching(server, f"job={first}") as job,
    ):
        for watcher in (queues, others, job):
            await watcher.begun()
        await push(server, "other", queue="other")
        (sms,) = await push(server, "sms", queue="sms")
        async with client_of(server) as client:
            await call_json(client, "JobService/Pull", {"queues": [{"queue": "mail"}]})
        assert (await queues.read())[0].data["jobId"] == str(sms)
        assert (await others.read())[0].data["jobId"] == str(sms)
        leased = (await job.read())[0].data
    assert (leased["kind"], leased["jobId"]) == ("EVENT_KIND_LEASED", str(first))


async def test_a_snapshot_comes_first_and_nothing_after_it_is_missed(server: RunningServer) -> None:
    (job_id,) = await push(server, "x")
    await push(server, "y", queue="sms")
    async with watching(server, "queue=mail,nothing&snapshot=1") as watcher:
        (part,) = await watcher.read()
        assert part.kind == "snapshot"
        assert part.data["queue"]["name"] == "mail"
        assert part.data["queue"]["counts"]["ready"] == "1"
        assert part.id == ""
        await watcher.begun()
        (second,) = await push(server, "z")
        event = (await watcher.read())[0]
        assert event.data["jobId"] == str(second)
    async with watching(server, "snapshot=true") as watcher:
        (all_queues,) = await watcher.read()
        assert [queue["name"] for queue in all_queues.data["queues"]] == ["mail", "sms"]
    async with watching(server, f"job={job_id}&snapshot") as watcher:
        (job,) = await watcher.read()
        assert job.data["job"]["state"] == "JOB_STATE_READY"
    async with watching(server, "queue=mail&snapshot=1", last_id=event.id) as watcher:
        await watcher.begun()
        await push(server, "again")
        assert (await watcher.read())[0].kind == "message"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("queue=_system", "queues[0]"),
        ("queue=", "queues[0]"),
        ("queue=a&queue=,", "queues[1]"),
        ("job=0", "job"),
        ("job=-1", "job"),
        ("job=18446744073709551616", "job"),
        ("job=%D9%A1", "job"),
        ("events=nothing", "events"),
        ("events=unspecified", "events"),
        ("events=", "events"),
        ("events=partial", "kinds[0]"),
        ("snapshot=maybe", "snapshot"),
        ("resume_token=x", "resume_token"),
        ("resume_token=%C3%A9", "resume_token"),
        ("group=g", "group"),
        ("%FF=1", "query"),
        ("&".join(["queue=a"] * 1_001), "query"),
    ],
)
async def test_a_bad_query_is_refused_by_its_field(
    filled_server: RunningServer, query: str, field: str
) -> None:
    refusal = refusal_of(await refused(filled_server, query))
    assert (refusal.code, refusal.field) == ("INVALID_ARGUMENT", field)


async def test_a_snapshot_of_no_job_is_refused(filled_server: RunningServer) -> None:
    reply = await refused(filled_server, "job=1&snapshot=1")
    assert reply.status_code == 404
    assert refusal_of(reply).reason == "JOB_NOT_FOUND"


async def test_only_get_reads_events(filled_server: RunningServer) -> None:
    async with client_of(filled_server) as client:
        for verb in ("POST", "HEAD", "PUT"):
            reply = await client.request(verb, "/events")
            assert (reply.status_code, reply.headers["allow"]) == (405, "GET")


async def test_a_resume_point_that_is_gone_is_a_status(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the stream has begun; a browser does not try again then."""
    async with watching(server) as watcher:
        begun = await watcher.begun()
        monkeypatch.setattr(kept_batches, "BATCHES_KEPT_MAX", 1)
        for _ in range(3):
            await push(server, "x")
        reply = await refused(server, **{"last-event-id": begun})
    assert reply.status_code == 400
    refusal = refusal_of(reply)
    assert (refusal.code, refusal.reason) == ("OUT_OF_RANGE", "OFFSET_GONE")


async def test_a_watcher_that_falls_behind_is_told_by_its_last_event(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes next is no longer kept: a browser that connects again is refused by a status."""

    def gone(_reader: feed_reader.Reader) -> feed_reader.Answer:
        raise feed._gone()

    async with watching(server) as watcher:
        await watcher.begun()
        monkeypatch.setattr(feed_reader.Reader, "read", gone)
        await push(server, "x")
        (last,) = [event async for event in watcher.events()]
    assert (last.kind, last.data["code"]) == ("error", "out_of_range")
    assert last.data["details"][0]["debug"]["reason"] == "OFFSET_GONE"


async def test_a_quiet_stream_has_pings_that_move_the_id(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Comments: no event for a page. So a quiet watcher resumes from what is still kept."""
    monkeypatch.setattr(feed, "HEARTBEAT_SECONDS", 0.01)
    async with watching(server, "queue=nothing-here") as watcher:
        begun = await watcher.begun()
        await push(server, "x")
        lines = watcher._lines
        while watcher.reader.last_id == begun:
            assert watcher.reader.take(await anext(lines)) is None
    assert watcher.reader.pings > 1


async def test_watchers_of_both_kinds_share_one_bound(transport: str) -> None:
    async with (
        running_server(transport=transport, max_watchers=2) as server,
        aio.insecure_channel(server.address) as channel,
        AsyncExitStack() as stack,
    ):
        call = JobServiceStub(channel).Watch(job_service_pb2.WatchRequest())
        await call.read()
        watcher = await stack.enter_async_context(watching(server))
        await watcher.begun()
        reply = await refused(server)
        assert reply.status_code == 429
        refusal = refusal_of(reply)
        assert refusal.reason == "TOO_MANY_CALLS"
        assert "google.rpc.RetryInfo" in refusal.details
        call.cancel()
        watchers = server.server.admission.watchers
        await until(lambda: len(watchers) == 1)
        await stack.aclose()
        await until(lambda: not len(watchers))


async def test_the_end_of_the_server_is_the_last_event(transport: str) -> None:
    """A browser connects again by itself, with the id it has."""
    async with running_server(transport=transport) as server, watching(server) as watcher:
        await watcher.begun()
        stopping = asyncio.ensure_future(server.server.stop())
        (last,) = [event async for event in watcher.events()]
        await stopping
    assert (last.kind, last.data["code"]) == ("error", "unavailable")
    assert last.id


async def test_web_pages_read_events_where_their_origin_is_named() -> None:
    async with running_server(http_cors_origins=OURS) as server:
        async with watching(server, origin=OURS) as watcher:
            await watcher.begun()
            assert watcher.response.headers["access-control-allow-origin"] == OURS
        reply = await refused(server, origin="https://evil.example")
        assert reply.status_code == 403
        assert refusal_of(reply).code == "PERMISSION_DENIED"


async def test_without_calls_there_are_no_events() -> None:
    async with running_server(http_calls=False) as server:
        assert (await refused(server)).status_code == 404
