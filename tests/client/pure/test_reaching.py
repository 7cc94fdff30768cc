"""What is said of a server that cannot be reached."""

from __future__ import annotations

import pytest

from jobline._reaching import PAUSE_SECONDS, Reaching, reason_of, sentence_of
from jobline.errors import (
    DeadlineExceeded,
    ErrorFacts,
    NotConnected,
    NotServed,
    Unavailable,
)

REFUSED = Unavailable(
    "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect "
    "to remote host: Connection refused"
)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (REFUSED, "connection refused"),
        (DeadlineExceeded("Deadline Exceeded"), "no answer"),
        (Unavailable("all addresses; last error: UNKNOWN: odd"), "UNKNOWN: odd"),
        (
            Unavailable("last error: x: connection attempt timed out before receiving SETTINGS"),
            "something listens there and says nothing",
        ),
        (Unavailable("Socket closed"), "the connection was closed"),
        (
            Unavailable("last error: x: SSL_ERROR_SSL: WRONG_VERSION_NUMBER: certificate: OK"),
            "the TLS handshake failed; does the server speak TLS?",
        ),
        (
            Unavailable("last error: x: Tls handshake failed: CERTIFICATE_VERIFY_FAILED: self"),
            "its certificate is not of an authority that is trusted here",
        ),
        (
            Unavailable("last error: Cannot check peer: missing selected ALPN property."),
            "it does not speak gRPC; is it the HTTP port?",
        ),
        (
            Unavailable("x: CERTIFICATE_VERIFY_FAILED: certificate has expired: OK"),
            "its certificate has expired, or is not valid yet",
        ),
        (
            Unavailable("x: CERTIFICATE_VERIFY_FAILED: certificate is not yet valid: OK"),
            "its certificate has expired, or is not valid yet",
        ),
        (
            Unavailable("last error: x: UNAUTHENTICATED: Hostname Verification Check failed."),
            "its certificate is for another name",
        ),
    ],
)
def test_why_is_said_in_words(error, said):
    """Trial B7: a person reads why, not where in gRPC it was found."""
    assert reason_of(error) == said


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (REFUSED.message, "cannot connect: connection refused"),
        (
            "failed to connect to all addresses; last error: x: WRONG_VERSION_NUMBER",
            "cannot connect: the TLS handshake failed; does the server speak TLS?",
        ),
        ("the store is closing", "the store is closing"),
    ],
)
def test_a_lost_server_is_told_without_the_parts_of_grpc(message, said):
    """Trial B7: in the errors of later calls too, whose reason is read from them again."""
    assert sentence_of(message) == said
    assert reason_of(Unavailable(said)) == said.removeprefix("cannot connect: ")


def test_a_refused_connection_is_tried_again_until_patience_ends():
    """Trial B7: then it is refused, with the address."""
    reaching = Reaching("mail:7070", 10.0, patience=1.0)
    assert reaching.pause_after(10.5, REFUSED) == PAUSE_SECONDS
    with pytest.raises(NotConnected, match="cannot connect to mail:7070: connection refused"):
        reaching.pause_after(11.0, REFUSED)


def test_the_more_telling_of_two_reasons_is_kept():
    """Trial B7: `localhost` has two addresses, and the one without a listener may be named last."""
    reaching = Reaching("localhost:7071", 0.0, patience=0.35)
    odd = Unavailable("last error: Trying to connect an http1.x server")
    for now, error in [(0.0, REFUSED), (0.1, odd), (0.2, REFUSED)]:
        reaching.pause_after(now, error)
    with pytest.raises(NotConnected, match="is it the HTTP port"):
        reaching.pause_after(0.4, REFUSED)


def test_silence_is_not_waited_for_twice():
    """Trial B7: a server that takes a connection and says nothing has had its time."""
    with pytest.raises(NotConnected, match="no answer"):
        Reaching("mail:7070", 0.0, patience=60.0).pause_after(1.0, DeadlineExceeded("late"))


@pytest.mark.parametrize(
    "error", [NotServed("no such method"), Unavailable("draining", ErrorFacts(reason="DRAINING"))]
)
def test_whatever_a_server_says_is_an_answer(error):
    """Trial B7: it need not know the health check, and may be about to stop."""
    assert Reaching("mail:7070", 0.0, patience=0.0).pause_after(5.0, error) is None
