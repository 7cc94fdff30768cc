"""What a client shows: tokens, TLS, and what of it goes over a network in plaintext."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import pytest

from jobline import AsyncClient, Client, Tls, Worker
from jobline._identity import identity_of, is_near
from jobline.errors import InvalidArgument, Unavailable

NEAR, FAR = "localhost:7070", "jobs.example:7070"
SECURE = grpc.ssl_channel_credentials()


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOKEN", "TLS", "TLS_CA", "TLS_CERTIFICATE", "TLS_KEY"):
        monkeypatch.delenv(f"JOBLINE_{name}", raising=False)


def identity(target: str = NEAR, **given: Any) -> Any:
    options = {"credentials": None, "metadata": None, "token": None, "tls": None} | given
    insecure = bool(options.pop("insecure_token", False))
    return identity_of(target, **options, insecure_token=insecure)


@pytest.mark.parametrize(
    ("target", "near"),
    [
        *((name, True) for name in (NEAR, "127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "unix:/run/s")),
        *((name, True) for name in ("LOCALHOST:1", "dns:///localhost:1", "ipv4:127.0.0.1:1")),
        *((name, False) for name in (FAR, "10.0.0.1:1", "localhost.evil:1", "127.0.0.1.evil:1")),
        *((name, False) for name in ("ipv4:127.0.0.1:1,10.0.0.1:1", "dns:///jobs:1", "[::2]:1")),
    ],
)
def test_what_is_this_host(target: str, near: bool) -> None:
    assert is_near(target) is near


def test_a_token_goes_with_each_call() -> None:
    assert identity(token="jl_x").metadata() == (("authorization", "Bearer jl_x"),)
    assert identity(metadata={"a": "b"}).metadata() == (("a", "b"),)
    assert "jl_x" not in repr(identity(token="jl_x"))


def test_a_function_returns_the_token_of_now() -> None:
    tokens = iter(["one", "two"])
    found = identity(token=lambda: next(tokens))
    assert [found.metadata()[0][1] for _ in range(2)] == ["Bearer one", "Bearer two"]
    with pytest.raises(Unavailable, match="raised StopIteration"):
        found.metadata()
    with pytest.raises(Unavailable, match="no text"):
        identity(token=lambda: "two words").metadata()


@pytest.mark.parametrize("kind", [Client, AsyncClient, Worker])
def test_a_token_needs_tls_to_another_host(kind: Any) -> None:
    with pytest.raises(InvalidArgument, match="everybody on the way") as caught:
        kind(FAR, token="jl_secret")
    assert "jl_secret" not in str(caught.value)
    kind(FAR, token="jl_secret", tls=True)
    kind(FAR, token="jl_secret", insecure_token=True)
    kind(FAR, token="jl_secret", credentials=SECURE)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"token": ""}, "one word"),
        ({"token": "a b"}, "one word"),
        ({"token": "a\n"}, "one word"),
        ({"token": 7}, "one word"),
        ({"token": "x", "metadata": {"Authorization": "y"}}, "give one of both"),
        ({"tls": True, "credentials": SECURE}, "give one of both"),
        ({"tls": Tls(certificate="a.pem")}, "needs its key"),
        ({"tls": Tls(ca="/none.pem")}, "ca: /none.pem: no such file"),
    ],
)
def test_what_does_not_go_together(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        identity(**given)


def test_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JOBLINE_TOKEN", "\n")
    with pytest.raises(InvalidArgument, match="one word"):
        identity()
    monkeypatch.setenv("JOBLINE_TOKEN", "jl_y\n")  # as a Secret that was made of a file
    assert identity().metadata() == (("authorization", "Bearer jl_y"),)
    assert identity(token="jl_x").metadata() == (("authorization", "Bearer jl_x"),)
    own = {"authorization": "Bearer z"}
    assert identity(metadata=own).metadata() == (("authorization", "Bearer z"),)
    with pytest.raises(InvalidArgument, match="JOBLINE_TLS=1"):
        identity(FAR)
    # Beside a server: its own certificate is nothing to a client.
    monkeypatch.setenv("JOBLINE_TLS_CERTIFICATE", "/server.pem")
    monkeypatch.setenv("JOBLINE_TLS_KEY", "/server.key")
    assert identity().credentials is None
    monkeypatch.setenv("JOBLINE_CLIENT_CERTIFICATE", "/client.pem")
    monkeypatch.setenv("JOBLINE_CLIENT_KEY", "/client.key")
    with pytest.raises(InvalidArgument, match=r"/client\.key: no such file"):
        identity()
    monkeypatch.setenv("JOBLINE_TLS_CA", "/ca.pem")
    for off in ("0", "False", "no", "OFF"):
        monkeypatch.setenv("JOBLINE_TLS", off)
        assert identity().credentials is None
    monkeypatch.delenv("JOBLINE_TLS_CA")
    monkeypatch.delenv("JOBLINE_CLIENT_CERTIFICATE")
    monkeypatch.delenv("JOBLINE_CLIENT_KEY")
    monkeypatch.setenv("JOBLINE_TLS", "1")
    assert identity(FAR).credentials is not None
    assert identity(FAR, tls=False, insecure_token=True).credentials is None
    monkeypatch.setenv("JOBLINE_TLS", "perhaps")
    with pytest.raises(InvalidArgument, match="must be 1 or 0"):
        identity()
