"""The files of a certificate and of keys on a disk that is full while somebody renews them."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import grpc
import httpx
import pytest
import trustme
from grpc import aio

from jobline.v1 import job_service_pb2 as pb
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.testing import RunningServer, running_server
from tests.server.access import api_key, auth_file, key, role
from tests.server.authorities import HOST, Files, context_of, credentials, secure_channel
from tests.small_disk import fill, mounted

pytestmark = [pytest.mark.fault, pytest.mark.root]

ROLE = role("all", (["*"], ["push"]))
URL = "/jobline.v1.JobService/Push"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small one, for the files alone: the queue has room."""
    with mounted(tmp_path / "disk", 1) as mount:
        yield mount


def cut_off(path: Path, content: bytes) -> None:
    """Writes a file in place, of which a full disk leaves the first page at most."""
    path.write_bytes(b"")
    fill(path.parent)
    with pytest.raises(OSError, match="No space left") as full:
        path.write_bytes(content)
    assert full.value.errno == errno.ENOSPC


async def look(server: RunningServer) -> None:
    """Has the server look at its files twice, as it does every two seconds."""
    background = server.server.background
    for task in background.tasks:
        if task.name in {"tls_files", "access_file"}:
            await background.run_once(task)
            await background.run_once(task)


async def code_of(server: RunningServer, authority: trustme.CA, name: str) -> object:
    """Pushes with the key of a name, by a new connection with a certificate; returns its code."""
    client = authority.issue_cert("worker.example")
    headers = (("authorization", f"Bearer {key(name)}"),)
    async with secure_channel(server.address, credentials(authority, client)) as channel:
        try:
            push = pb.PushRequest(queue="q", payloads=[b"x"])
            await JobServiceStub(channel).Push(push, metadata=headers, timeout=10)
        except aio.AioRpcError as error:
            return error.code()
    return grpc.StatusCode.OK


@pytest.mark.timeout(120)
async def test_files_that_a_full_disk_cut_off_change_nothing_until_they_are_whole(
    disk: Path, tmp_path: Path
) -> None:
    """Of each one failure is counted; nobody is let in who was not before."""
    authority, files = trustme.CA(), Files(disk)
    files.write(authority.issue_cert(HOST))
    authority.cert_pem.write_to_path(files.client_ca)
    old, new = (ROLE + api_key(name, "all") for name in ("old", "new"))
    path = auth_file(disk, old)
    settings = {**files.settings(mutual=True), "transport": "auto", "auth": path}
    async with running_server(data=tmp_path / "data", **settings) as server:
        tls, access = server.server._doors.tls, server.server.authentication.access
        assert tls is not None
        assert access is not None
        issued, port = authority.issue_cert(HOST), server.http.rpartition(":")[2]
        chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
        for file, content in (
            (files.client_ca, authority.cert_pem.bytes()),
            (files.certificate, chain),
            (path, new.encode()),
        ):
            cut_off(file, content)
            await look(server)
            assert await code_of(server, authority, "old") is grpc.StatusCode.OK
            assert await code_of(server, authority, "new") is grpc.StatusCode.UNAUTHENTICATED
            url = f"https://{HOST}:{port}{URL}"
            async with httpx.AsyncClient(verify=context_of(authority)) as stranger:
                with pytest.raises(httpx.HTTPError):
                    await stranger.post(url, json={"queue": "q", "payloads": ["eA=="]})
            (disk / "filler").unlink()
        assert (tls.reload_failures, access.authenticator.reload_failures) == (2, 1)
        files.write(issued)
        authority.cert_pem.write_to_path(files.client_ca)
        path.write_text(new)
        await look(server)
        assert tls.now.certificate == chain
        assert await code_of(server, authority, "new") is grpc.StatusCode.OK
        assert await code_of(server, authority, "old") is grpc.StatusCode.UNAUTHENTICATED
