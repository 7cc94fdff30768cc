"""Handshakes that failed, by reason."""

from __future__ import annotations

import ssl

import pytest
import trustme

from jobline_server.auth.handshake_failures import OTHER, REASONS_MAX, HandshakeFailures
from tests.server.authorities import HOST


def failed(reason: str | None) -> ssl.SSLError:
    error = ssl.SSLError(1, "x")
    error.reason = reason  # type: ignore[assignment]  # OpenSSL's, which may have none
    return error


def test_callers_cannot_make_names_without_end() -> None:
    """Each reason is a series of a metric."""
    failures = HandshakeFailures()
    for number in range(2 * REASONS_MAX):
        failures.note(failed(f"REASON_{number}"))
    failures.note(failed("REASON_3"))
    failures.note(failed(None))
    assert len(failures.counts) == REASONS_MAX + 1
    assert (failures.counts["REASON_3"], failures.counts[OTHER]) == (2, REASONS_MAX + 1)


def test_a_handshake_that_goes_on_is_none_that_failed() -> None:
    failures = HandshakeFailures()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sslobject_class = failures.connections()
    trustme.CA().issue_cert(HOST).configure_cert(context)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = context.wrap_bio(incoming, outgoing, server_side=True)
    with pytest.raises(ssl.SSLWantReadError):
        connection.do_handshake()
    assert not failures.counts
    incoming.write(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(ssl.SSLError):
        connection.do_handshake()
    assert failures.counts == {"HTTP_REQUEST": 1}
