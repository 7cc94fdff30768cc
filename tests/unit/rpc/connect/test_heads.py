"""What the head of a call says."""

from __future__ import annotations

import pytest

from jobline_server.rpc.connect.failures import CODES
from jobline_server.rpc.connect.heads import read_head, stream_type

JSON = {"content-type": "application/json"}


def test_a_head_says_how_to_read_the_body() -> None:
    plain = read_head(JSON)
    assert (plain.media_type, plain.encoding, plain.seconds) == (
        "application/json",
        "identity",
        None,
    )

    full = {
        "content-type": "application/proto",
        "content-encoding": "GZIP",
        "connect-timeout-ms": "1500",
        "connect-protocol-version": "1",
    }
    head = read_head(full)
    assert (head.media_type, head.encoding, head.seconds) == ("application/proto", "gzip", 1.5)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("application/connect+json", "application/connect+json"),
        ("application/connect+proto; x=y", "application/connect+proto"),
        ("application/connect+xml", ""),
        ("application/json", ""),
        ("", ""),
    ],
)
def test_a_stream_in_connects_framing_is_known(given: str, found: str) -> None:
    assert stream_type({"content-type": given}) == found


def test_codes_have_the_statuses_of_the_protocol() -> None:
    """The table of https://connectrpc.com/docs/protocol#error-codes."""
    assert dict(CODES.values()) == {
        "canceled": 499,
        "unknown": 500,
        "invalid_argument": 400,
        "deadline_exceeded": 504,
        "not_found": 404,
        "already_exists": 409,
        "permission_denied": 403,
        "resource_exhausted": 429,
        "failed_precondition": 400,
        "aborted": 409,
        "out_of_range": 400,
        "unimplemented": 501,
        "internal": 500,
        "unavailable": 503,
        "data_loss": 500,
        "unauthenticated": 401,
    }
