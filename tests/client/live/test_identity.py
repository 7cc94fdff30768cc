"""Clients and workers with tokens, and by TLS, at a server that asks for both."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from jobline import AsyncClient, Client, Tls, Worker, errors
from jobline_server.testing import running_server_in_thread
from tests.server.access import api_key, auth_file, key, role
from tests.server.authorities import HOST, Files
from tests.unit.auth.tokens import Issuer, issuer_lines

ALL = ["push", "work", "read", "read_payload", "manage"]
MAIL = role("mail", (["mail"], ALL))


def test_a_token_by_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All by arguments, and all by the environment; a worker pushes with its own token."""
    import trustme  # noqa: PLC0415  # for this test

    authority, files = trustme.CA(), Files(tmp_path)
    files.write(authority.issue_cert(HOST))
    authority.cert_pem.write_to_path(files.client_ca)
    auth = auth_file(tmp_path, MAIL + api_key("mail", "mail"))
    with running_server_in_thread(
        tmp_path / "d", transport="auto", auth=auth, listen=f"{HOST}:0", **files.settings()
    ) as server:
        tls = Tls(ca=files.client_ca)
        with Client(server.address, token=key("mail"), tls=tls) as client:
            client.push("mail", "first")
        with Client(server.address, tls=tls) as client, pytest.raises(errors.Unauthenticated):
            client.push("mail", "none")
        monkeypatch.setenv("JOBLINE_TOKEN", key("mail"))
        monkeypatch.setenv("JOBLINE_TLS_CA", str(files.client_ca))
        worker = Worker(server.address)
        seen = []

        @worker.handler("mail")
        def handle(payload: str) -> None:
            seen.append(payload)

        worker.run(exit_when_idle=0.2)
        assert seen == ["first"]
        with Client(server.address) as client, pytest.raises(errors.PermissionDenied, match="push"):
            client.push("other", 1)


async def test_a_client_asks_for_the_token_of_now(tmp_path: Path) -> None:
    auth = auth_file(tmp_path, MAIL + api_key("mail", "mail"))
    with running_server_in_thread(tmp_path / "d", auth=auth) as server:
        asked = []

        def token() -> str:
            asked.append(1)
            return key("mail")

        async with AsyncClient(server.address, token=token) as client:
            await client.push("mail", 1)
            await client.push("mail", 2)
        assert len(asked) >= 2


def test_a_worker_renews_its_token(tmp_path: Path) -> None:
    """Its stream ends with the first one, and goes on with the next."""
    issuer = Issuer()
    (tmp_path / "keys.json").write_bytes(issuer.jwks())
    auth = auth_file(tmp_path, MAIL + issuer_lines('jwks_file = "keys.json"'))
    lifetimes = iter([2.0])
    given = []

    def token() -> str:
        given.append(time.monotonic())
        return issuer.token(seconds=next(lifetimes, 600.0), roles=["mail"])

    with running_server_in_thread(tmp_path / "d", auth=auth) as server:
        long = issuer.token(seconds=600, roles=["mail"])
        with Client(server.address, token=long) as client:
            client.push("mail", 1)
            later = client.push("mail", 2, delay=4)
            worker = Worker(server.address, token=token)
            done = []

            @worker.handler("mail")
            def handle(number: int) -> None:
                done.append(number)

            worker.run(exit_when_idle=5)
            assert done == [1, 2]
            assert client.jobs.get(later.id).state.name == "COMPLETED"
    assert len(given) >= 2


def test_a_worker_says_that_its_token_has_ended(tmp_path: Path) -> None:
    """One that is a text cannot be renewed: the worker ends, with the reason."""
    ended = api_key("mail", "mail", expires="2020-01-01T00:00:00Z")
    auth = auth_file(tmp_path, MAIL + ended)
    with running_server_in_thread(tmp_path / "d", auth=auth) as server:
        worker = Worker(server.address, token=key("mail"))
        worker.handler("mail")(print)
        with pytest.raises(errors.Unauthenticated, match="has expired"):
            worker.run()
