"""`jobline doctor`: what stands between it and the server, and who may call."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import cast

import grpc
import pytest
import trustme

from jobline.cli.connection import Connection
from jobline.cli.doctor_stream import access, said_of
from jobline.cli.exit_codes import Exit
from jobline.cli.findings import Health
from tests.server.authorities import Files


@contextmanager
def proxy(target: str, quiet_seconds: float) -> Iterator[str]:
    """Passes bytes on, and closes a connection on which nothing has come for so long."""
    host, _, port = target.rpartition(":")
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, sink: socket.socket) -> None:
        source.settimeout(quiet_seconds)
        with source, sink, suppress(OSError):
            while piece := source.recv(65_536):
                sink.sendall(piece)

    def serve() -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection((host, int(port)))
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    with listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


def test_a_proxy_that_cuts_quiet_streams_is_found(jobline, served):
    with proxy(served["grpc"], quiet_seconds=1) as between:
        ended = jobline("doctor", "--read-only", "--idle", "3s", server=between)
    assert ended.code == Exit.FAILED
    assert "quiet stream  cut after" in ended.out
    assert "raise its timeouts" in ended.out


def test_a_quiet_stream_that_stays_is_said(jobline, served):
    ended = jobline("doctor", "--read-only", "--idle", "200ms", "--json")
    assert ended.code == Exit.OK
    found = {line["what"]: line["found"] for line in ended.lines}
    assert found["quiet stream"] == "held for 200 ms"
    assert found["stream"].startswith("the first message in")


def test_a_port_that_is_mute_has_no_stream(jobline):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        ended = jobline("doctor", server=f"127.0.0.1:{mute.getsockname()[1]}")
    assert ended.code == Exit.FAILED


class Refusing:
    """A channel on which each call ends with a code."""

    def __init__(self, code: grpc.StatusCode) -> None:
        self._code = code

    def unary_unary(self, _method: str):
        def call(_request: bytes, timeout: float) -> bytes:
            raise grpc.aio.AioRpcError(self._code, grpc.aio.Metadata(), grpc.aio.Metadata())

        return call


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (grpc.StatusCode.UNAUTHENTICATED, "callers need a token or a certificate"),
        (grpc.StatusCode.PERMISSION_DENIED, "callers need a token or a certificate"),
        (grpc.StatusCode.UNAVAILABLE, "callers need no token"),
    ],
)
def test_a_caller_who_is_known_and_may_not_found_a_guarded_server(code, said):
    """A certificate without a role is no sign that everybody may."""
    channel = cast("grpc.Channel", Refusing(code))
    found = access(channel, Connection("queue.example:7070", use_tls=True))
    assert said in found.found


@pytest.mark.parametrize(
    ("server", "health"),
    [
        ("localhost:7070", Health.FINE),
        ("[::1]:7070", Health.FINE),
        ("unix:/run/jobline.sock", Health.FINE),
        ("10.0.0.7:7070", Health.WORRYING),
        ("queue.example:7070", Health.WORRYING),
    ],
)
def test_an_address_that_others_reach_is_worth_a_word(server, health):
    assert said_of(Connection(server), is_guarded=False).health is health
    assert said_of(Connection(server), is_guarded=True).health is Health.FINE


@pytest.mark.parametrize("server", ["localhost:7070", "queue.example:7070"])
def test_a_certificate_that_was_shown_may_be_why_no_token_was_needed(server, tmp_path):
    """Wherever the server is; nothing is said of callers without one."""
    files = Files(tmp_path)
    files.write(trustme.CA().issue_cert("client"))
    shown = Connection(server, client_certificate=files.certificate, client_key=files.key)
    found = said_of(shown, is_guarded=False)
    assert found.health is Health.FINE
    assert found.found == "no token was needed with this certificate; reached by TLS"
