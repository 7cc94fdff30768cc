"""Who calls by TLS: known by certificates, and without names by hosts, on both transports."""

from __future__ import annotations

import grpc
import httpx
import pytest
import trustme
from grpc import aio

from jobline.v1 import job_service_pb2 as pb
from jobline.v1 import queue_service_pb2
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline.v1.queue_service_pb2_grpc import QueueServiceStub
from jobline_server.testing import running_server
from tests.server.access import auth_file, role
from tests.server.authorities import Files, context_of, credentials, secure_channel
from tests.server.test_tls import BODY, PUSH, URL, http, push


async def test_callers_are_known_by_their_certificates(
    files: Files, authority: trustme.CA, transport: str
) -> None:
    """By SAN, or the common name of a certificate without one; over gRPC and HTTP alike."""
    text = role("all", (["*"], ["push", "manage", "read"])) + "".join(
        f'[[certificates]]\nname = "{name}"\nroles = ["all"]\n'
        for name in ("worker.example", "spiffe-free")
    )
    path = auth_file(files.folder, text)
    settings = files.settings(mutual=True)
    async with running_server(
        transport=transport, data=files.folder / "d", auth=path, **settings
    ) as server:
        known = authority.issue_cert("worker.example")
        unknown = authority.issue_cert("other.example", common_name="worker.example")
        plain = authority.issue_cert(common_name="spiffe-free")
        async with secure_channel(server.address, credentials(authority, known)) as channel:
            await JobServiceStub(channel).Push(PUSH)
            pause = queue_service_pb2.PauseQueueRequest(queue="mail", reason="r")
            reply = await QueueServiceStub(channel).PauseQueue(pause)
            assert reply.queue.paused_by == "certificate:worker.example"
        await push(secure_channel(server.address, credentials(authority, plain)))
        with pytest.raises(aio.AioRpcError) as caught:
            await push(secure_channel(server.address, credentials(authority, unknown)))
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        for client_certificate, code in ((known, 200), (plain, 200), (unknown, 401)):
            async with http(server, context_of(authority, client_certificate)) as client:
                assert (await client.post(URL, json=BODY)).status_code == code
                forged = {":certificate": "worker.example"}
                with pytest.raises(httpx.HTTPError):
                    (await client.post(URL, json=BODY, headers=forged)).raise_for_status()


async def test_a_certificate_of_an_address_has_no_name(
    files: Files, authority: trustme.CA, transport: str
) -> None:
    """One transport took the address for a name, and the other doors the common name beside it."""
    text = role("all", (["*"], ["push"])) + "".join(
        f'[[certificates]]\nname = "{name}"\nroles = ["all"]\n'
        for name in ("worker.example", "127.0.0.9")
    )
    settings = files.settings(mutual=True) | {"auth": auth_file(files.folder, text)}
    shown = authority.issue_cert("127.0.0.9", common_name="worker.example")
    async with running_server(transport=transport, data=files.folder / "d", **settings) as server:
        with pytest.raises(aio.AioRpcError) as caught:
            await push(secure_channel(server.address, credentials(authority, shown)))
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        async with http(server, context_of(authority, shown)) as client:
            assert (await client.post(URL, json=BODY)).status_code == 401


async def test_callers_of_streams_are_known_by_their_certificates(
    files: Files, authority: trustme.CA, transport: str
) -> None:
    """As those of single calls are, each by its own connection."""
    text = role("all", (["*"], ["read"])) + '[[certificates]]\nname = "known"\nroles = ["all"]\n'
    settings = files.settings(mutual=True) | {"auth": auth_file(files.folder, text)}

    async def wait(channel: aio.Channel, metadata: tuple[tuple[str, str], ...] = ()) -> str:
        replies = JobServiceStub(channel).Wait(pb.WaitRequest(ids=[1]), metadata=metadata)
        try:
            return f"{len([one async for one in replies])} replies"
        except aio.AioRpcError as error:
            return error.code().name

    async with (
        running_server(transport=transport, data=files.folder / "d", **settings) as server,
        secure_channel(
            server.address, credentials(authority, authority.issue_cert(common_name="known"))
        ) as known,
        secure_channel(
            server.address, credentials(authority, authority.issue_cert(common_name="other"))
        ) as other,
    ):
        for _ in range(3):
            assert await wait(known) == "1 replies"
            assert await wait(other) == "UNAUTHENTICATED"
        assert await wait(other, (("x509_common_name", "known"),)) == "UNAUTHENTICATED"


async def test_callers_without_a_name_are_known_by_their_hosts(
    files: Files, authority: trustme.CA, transport: str
) -> None:
    settings = files.settings()
    async with (
        running_server(transport=transport, data=files.folder / "d", **settings) as server,
        secure_channel(server.address, credentials(authority)) as channel,
    ):
        await JobServiceStub(channel).Push(PUSH)
        pause = queue_service_pb2.PauseQueueRequest(queue="mail", reason="r")
        reply = await QueueServiceStub(channel).PauseQueue(pause)
    assert reply.queue.paused_by == "anonymous@127.0.0.1"
