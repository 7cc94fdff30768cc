"""TLS for gRPC and HTTP: who is trusted and who is not, and certificates that change under load."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from typing import Any

import grpc
import httpx
import pytest
import trustme
from grpc import aio

from jobline.v1 import job_service_pb2 as pb
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.testing import RunningServer, running_server
from tests.server.authorities import HOST, Files, context_of, credentials, expired, secure_channel

PUSH = pb.PushRequest(queue="mail", payloads=[b"x"])
URL = "/jobline.v1.JobService/Push"
BODY = {"queue": "mail", "payloads": ["eA=="]}


@pytest.fixture
async def sealed(files: Files, transport: str) -> AsyncIterator[RunningServer]:
    settings = files.settings()
    async with running_server(transport=transport, data=files.folder / "d", **settings) as server:
        yield server


@pytest.fixture
async def mutual(files: Files, transport: str) -> AsyncIterator[RunningServer]:
    settings = files.settings(mutual=True)
    async with running_server(transport=transport, data=files.folder / "d", **settings) as server:
        yield server


async def push(channel: aio.Channel, seconds: float = 10) -> Any:
    async with channel:
        return await JobServiceStub(channel).Push(PUSH, timeout=seconds)


async def is_refused(channel: aio.Channel) -> bool:
    try:
        await push(channel, 2)
    except aio.AioRpcError as error:
        return error.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}
    return False


def http(server: RunningServer, context: ssl.SSLContext) -> httpx.AsyncClient:
    port = server.http.rpartition(":")[2]
    return httpx.AsyncClient(base_url=f"https://{HOST}:{port}", verify=context)


async def reload(server: RunningServer) -> None:
    """Has the server look at its files."""
    background = server.server.background
    (task,) = [task for task in background.tasks if task.name == "tls_files"]
    await background.run_once(task)


async def test_calls_by_tls(sealed: RunningServer, authority: trustme.CA) -> None:
    """HTTP is TLS, too."""
    await push(secure_channel(sealed.address, credentials(authority)))
    async with http(sealed, context_of(authority)) as client:
        assert (await client.post(URL, json=BODY)).status_code == 200
        assert (await client.get("/healthz")).status_code == 200
        page = (await client.get("/metrics")).text
    assert "jobline_tls_certificate_expiry_timestamp_seconds" in page


async def test_plaintext_is_refused(sealed: RunningServer) -> None:
    assert await is_refused(grpc.aio.insecure_channel(sealed.address))
    async with httpx.AsyncClient(base_url=f"http://{sealed.http}") as client:
        with pytest.raises(httpx.HTTPError):
            await client.get("/healthz")


async def test_a_client_trusts_its_authority_and_the_name(
    sealed: RunningServer, authority: trustme.CA
) -> None:
    assert await is_refused(secure_channel(sealed.address, credentials(trustme.CA())))
    assert await is_refused(secure_channel(sealed.address, credentials(authority), "other.host"))


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_old_versions_are_refused(sealed: RunningServer, authority: trustme.CA) -> None:
    """TLS 1.2 is the oldest, on both ports."""
    context = context_of(authority)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    for address in (sealed.address, sealed.http):
        host, port = address.split(":")
        with pytest.raises((ssl.SSLError, OSError)):
            await asyncio.open_connection(host, int(port), ssl=context, server_hostname=HOST)


async def test_a_certificate_that_is_over(
    files: Files, authority: trustme.CA, transport: str
) -> None:
    """Clients refuse it; the metrics said when it would end."""
    files.write(expired(authority))
    settings = files.settings()
    async with running_server(transport=transport, data=files.folder / "d", **settings) as server:
        assert await is_refused(secure_channel(server.address, credentials(authority)))


async def test_clients_show_certificates(mutual: RunningServer, authority: trustme.CA) -> None:
    """Those of the authority; none, another's, and one that is over are refused on both ports."""
    good = authority.issue_cert("worker.example")
    await push(secure_channel(mutual.address, credentials(authority, good)))
    async with http(mutual, context_of(authority, good)) as client:
        assert (await client.post(URL, json=BODY)).status_code == 200
    for bad in (None, trustme.CA().issue_cert("worker.example"), expired(authority)):
        assert await is_refused(secure_channel(mutual.address, credentials(authority, bad)))
        async with http(mutual, context_of(authority, bad)) as client:
            with pytest.raises(httpx.HTTPError):
                await client.post(URL, json=BODY)


async def test_handshakes_that_fail_are_counted(
    mutual: RunningServer, authority: trustme.CA, transport: str
) -> None:
    """By reason, on both ports; grpcio says nothing of its own."""
    good = authority.issue_cert("worker.example")
    for bad in (None, trustme.CA().issue_cert("worker.example")):
        assert await is_refused(secure_channel(mutual.address, credentials(authority, bad)))
        async with http(mutual, context_of(authority, bad)) as client:
            with pytest.raises(httpx.HTTPError):
                await client.get("/metrics")
    async with http(mutual, context_of(authority, good)) as client:
        page = (await client.get("/metrics")).text
    counted = dict(
        re.findall(r'^jobline_tls_handshakes_failed_total{reason="(.*)"} (.*)$', page, re.MULTILINE)
    )
    assert set(counted) == {"CERTIFICATE_VERIFY_FAILED", "PEER_DID_NOT_RETURN_A_CERTIFICATE"}
    for count in counted.values():
        assert float(count) >= 2 if transport == "native" else float(count) == 1


async def test_certificates_change_under_load(
    sealed: RunningServer, files: Files, authority: trustme.CA
) -> None:
    """New connections get the new one, and no call is dropped."""
    other = trustme.CA()
    both = grpc.ssl_channel_credentials(authority.cert_pem.bytes() + other.cert_pem.bytes())
    stopped, count = asyncio.Event(), 0

    async def load() -> None:
        nonlocal count
        async with secure_channel(sealed.address, both) as channel:
            while not stopped.is_set():
                await JobServiceStub(channel).Push(PUSH)
                count += 1

    callers = [asyncio.create_task(load()) for _ in range(8)]
    for number in range(6):
        files.write((other, authority)[number % 2].issue_cert(HOST))
        await reload(sealed)
        await push(secure_channel(sealed.address, both))
    files.write(other.issue_cert(HOST))
    await reload(sealed)
    await push(secure_channel(sealed.address, credentials(other)))
    assert await is_refused(secure_channel(sealed.address, credentials(authority)))
    async with http(sealed, context_of(other)) as client:
        assert (await client.get("/healthz")).status_code == 200
    async with http(sealed, context_of(authority)) as client:
        with pytest.raises(httpx.HTTPError):
            await client.get("/healthz")
    stopped.set()
    await asyncio.gather(*callers)
    assert count > 8


async def test_files_that_do_not_fit_change_nothing(
    sealed: RunningServer, files: Files, authority: trustme.CA
) -> None:
    """A new certificate with the old key, or none at all: the old pair stays in force."""
    for text in (authority.issue_cert(HOST).cert_chain_pems[0].bytes(), b"", b"none"):
        files.certificate.write_bytes(text)
        await reload(sealed)
        await push(secure_channel(sealed.address, credentials(authority)))
    files.certificate.unlink()
    await reload(sealed)
    await push(secure_channel(sealed.address, credentials(authority)))
    tls = sealed.server._doors.tls
    assert tls is not None
    assert tls.reload_failures == 4


async def test_authorities_of_clients_change(
    mutual: RunningServer, files: Files, authority: trustme.CA
) -> None:
    other = trustme.CA()
    other.cert_pem.write_to_path(files.client_ca)
    await reload(mutual)
    good, bad = other.issue_cert("w.example"), authority.issue_cert("w.example")
    await push(secure_channel(mutual.address, credentials(authority, good)))
    assert await is_refused(secure_channel(mutual.address, credentials(authority, bad)))
    async with http(mutual, context_of(authority, good)) as client:
        assert (await client.get("/healthz")).status_code == 200
    async with http(mutual, context_of(authority, bad)) as client:
        with pytest.raises(httpx.HTTPError):
            await client.get("/healthz")


async def test_the_health_port_is_plain_and_has_nothing_else(files: Files, transport: str) -> None:
    settings = files.settings(mutual=True)
    async with running_server(
        transport=transport, data=files.folder / "d", health_listen="127.0.0.1:0", **settings
    ) as server:
        (address,) = server.server._doors.health_addresses  # type: ignore[attr-defined]  # its own
        async with grpc.aio.insecure_channel(address) as channel:
            check: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
            assert await check(b"") == b"\x08\x01"
            with pytest.raises(aio.AioRpcError) as caught:
                await JobServiceStub(channel).Push(PUSH)
            assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
            said = "this port serves health alone: give the gRPC port"
            assert caught.value.details() == said


async def test_a_socket_stays_plain(files: Files, transport: str) -> None:
    settings = files.settings(mutual=True)
    socket = files.folder / "s"
    async with running_server(
        transport=transport, data=files.folder / "d", unix_socket=socket, **settings
    ):
        await push(grpc.aio.insecure_channel(f"unix:{socket}"))


async def test_slow_handshakes_end(sealed: RunningServer, authority: trustme.CA) -> None:
    """Connections that say nothing, or half of a hello, keep nobody away and are closed."""
    slow = []
    for address in (sealed.address, sealed.http):
        host, port = address.split(":")
        for number in range(100):
            reader, writer = await asyncio.open_connection(host, int(port))
            if number % 2:
                writer.write(b"\x16\x03\x01\x02\x00\x01")
            slow.append((reader, writer))
    await push(secure_channel(sealed.address, credentials(authority)))
    async with http(sealed, context_of(authority)) as client:
        assert (await client.get("/healthz")).status_code == 200
    async with asyncio.timeout(40):
        for reader, writer in slow:
            while await reader.read(1_000):
                pass
            writer.close()
