"""The HTTP port: metrics, health pages, the landing page."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from grpc import aio
from prometheus_client.parser import text_string_to_metric_families

from jobline.v1 import admin_service_pb2, job_pb2, job_service_pb2
from jobline.v1.admin_service_pb2_grpc import AdminServiceStub
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.runtime.health import Health
from jobline_server.testing import RunningServer, running_server
from jobline_server.web import connections, metrics
from jobline_server.web.errors import CannotListen
from jobline_server.web.server import bound


async def fetch(server: RunningServer, path: str, accept: str = "*/*") -> httpx.Response:
    """One page."""
    async with httpx.AsyncClient(base_url=f"http://{server.http}") as client:
        return await client.get(path, headers={"accept": accept})


Samples = dict[tuple[str, frozenset[str]], float]


async def samples(server: RunningServer) -> Samples:
    """All samples by name and values of labels."""
    page = await fetch(server, "/metrics")
    return {
        (sample.name, frozenset(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(page.text)
        for sample in family.samples
    }


async def test_metrics_tell_of_jobs_and_calls(server: RunningServer, channel: aio.Channel) -> None:
    """Counts of the server, of its queues and of its methods."""
    stub = JobServiceStub(channel)
    pushed = await stub.Push(job_service_pb2.PushRequest(queue="mail", payloads=[b"x"] * 3))
    waits = job_pb2.JobOptions(depends_on=[pushed.first_id])
    await stub.Push(job_service_pb2.PushRequest(queue="later", payloads=[b""], options=waits))
    with pytest.raises(aio.AioRpcError):
        await stub.Push(job_service_pb2.PushRequest())

    found = await samples(server)

    def value(name: str, *labels: str) -> float:
        return found[name, frozenset(labels)]

    assert value("jobline_jobs_pushed_total") == 4
    assert value("jobline_jobs", "blocked") == 1
    assert value("jobline_jobs", "ready") == 3
    assert value("jobline_queue_jobs", "mail", "ready") == 3
    assert value("jobline_waiting_bytes") == 3
    assert value("jobline_disk_full") == 0
    push = ("jobline.v1.JobService", "Push")
    assert value("jobline_calls_total", *push, "OK") == 2
    assert value("jobline_calls_total", *push, "INVALID_ARGUMENT") == 1
    assert value("jobline_call_seconds_count", *push) == 3
    assert value("jobline_calls_in_flight", *push) == 0
    assert value("jobline_beat_failures_in_a_row", "checkpoint") == 0
    assert value("jobline_queue_jobs_pushed_total", "mail") == 3
    assert value("jobline_commit_duration_seconds_count") >= 1
    assert value("process_start_time_seconds") > 0


async def test_queues_in_metrics_are_bounded(
    server: RunningServer, channel: aio.Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left out is a number too."""
    monkeypatch.setattr(metrics, "QUEUES_MAX", 2)
    stub = JobServiceStub(channel)
    for name in ("a", "b", "c", "d"):
        await stub.Push(job_service_pb2.PushRequest(queue=name, payloads=[b""]))

    found = await samples(server)

    named = {label for name, labels in found for label in labels if name == "jobline_queue_paused"}
    assert named == {"a", "b"}
    assert found["jobline_queues_without_metrics", frozenset()] == 2


async def test_a_scraper_may_ask_for_openmetrics(server: RunningServer) -> None:
    """By its Accept header."""
    page = await fetch(server, "/metrics", "application/openmetrics-text; version=1.0.0")

    assert page.headers["content-type"].startswith("application/openmetrics-text")
    assert page.text.endswith("# EOF\n")


async def test_health_pages(server: RunningServer) -> None:
    """Well and ready are two things."""
    assert (await fetch(server, "/healthz")).status_code == 200
    assert (await fetch(server, "/readyz")).status_code == 200

    server.server.services.health.set_serving(False)

    assert (await fetch(server, "/healthz")).status_code == 200
    assert (await fetch(server, "/readyz")).status_code == 503


async def test_a_lost_shard_shows_in_health_and_metrics_and_the_server_stays_ready(
    server: RunningServer, channel: aio.Channel
) -> None:
    """A load balancer that removed the server would keep callers from the other shards, too."""
    slots = server.server.runtime.core.slots
    slots.close(slots[1], Health.FENCED, "another process has it")

    page = await fetch(server, "/healthz")
    assert page.status_code == 503
    assert page.text == "shard 1 is not served any more (fenced): another process has it\n"
    assert (await fetch(server, "/readyz")).status_code == 200
    assert server.server.services.health.serving
    found = await samples(server)
    served = [found["jobline_shard_served", frozenset({str(shard)})] for shard in range(2)]
    assert served == [1, 0]
    stats = await AdminServiceStub(channel).GetStats(admin_service_pb2.GetStatsRequest())
    assert [shard.problem for shard in stats.shards if shard.problem] == [
        "fenced: another process has it"
    ]


async def test_the_landing_page_says_where_things_are(server: RunningServer) -> None:
    """The page for a person who opens the port."""
    page = await fetch(server, "/")

    assert "/metrics" in page.text
    assert "grpcurl" in page.text
    assert (await fetch(server, "/nothing")).status_code == 404


async def test_the_port_can_be_left_out(transport: str) -> None:
    """An empty address opens no port."""
    async with running_server(transport=transport, http="") as server:
        assert server.http == ""


async def half_request(server: RunningServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection on which a request was begun."""
    host, _, port = server.http.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
    await writer.drain()
    return reader, writer


async def test_half_requests_are_bounded(transport: str) -> None:
    """Trial E11: the oldest make room, and who asks properly is answered meanwhile."""
    async with running_server(transport=transport, max_http_connections=100) as server:
        await half_requests_make_room(server)


async def half_requests_make_room(server: RunningServer) -> None:
    halves = [await half_request(server) for _ in range(130)]
    try:
        assert (await fetch(server, "/healthz")).status_code == 200

        # The last of those that made room for the others, and for the page.
        assert await halves[29][0].read() == b""
        reader, writer = halves[-1]
        writer.write(b"Connection: close\r\n\r\n")
        assert b"200 OK" in await reader.read()
    finally:
        for _, writer in halves:
            writer.close()


async def test_a_half_request_has_a_time(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial E11: also on a connection that was answered before."""
    reader, writer = await half_request(server)
    writer.write(b"\r\n")
    assert b"well" in await reader.readuntil(b"well\n")
    monkeypatch.setattr(connections, "EXCHANGE_SECONDS", 0.2)

    writer.write(b"GET /hea")

    async with asyncio.timeout(20):
        assert await reader.read() == b""
    writer.close()


async def test_a_port_that_is_taken_stops_the_start(server: RunningServer) -> None:
    """And what had been opened is closed again."""
    said = r"cannot listen there \(address already in use\); is another server on it\?"
    with pytest.raises(CannotListen, match=said):
        async with running_server(http=server.http):
            pass
    with pytest.raises(CannotListen):
        bound(server.http)


def test_an_address_of_another_machine_is_not_taken_for_a_taken_port() -> None:
    """Trial D10: no other server is on it; and the reason is in words, without an errno."""
    with pytest.raises(CannotListen) as refused:
        bound("192.0.2.1:0")
    said = "192.0.2.1:0: cannot listen there (cannot assign requested address)"
    assert str(refused.value) == said
