"""Signatures are those of Standard Webhooks: its own package verifies ours, and we verify its."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from standardwebhooks.webhooks import Webhook

from jobline.webhooks import InvalidWebhook
from jobline.webhooks import verify as verify_in_client
from jobline_server.wire.signatures import (
    BadSignature,
    secret_of,
    shown_secret,
    signed_headers,
    verify,
)

SECRET, OLD = b"s" * 32, b"o" * 32
BODY = b'{"type": "job.completed"}'
NOW = 1_800_000_000


def now() -> int:
    return int(datetime.now(UTC).timestamp())


def test_their_package_verifies_ours() -> None:
    """Whichever of the two secrets the receiver has."""
    headers = signed_headers((SECRET, OLD), "msg_1", now(), BODY)
    for secret in (SECRET, OLD):
        assert Webhook(shown_secret(secret)).verify(BODY, headers) == {"type": "job.completed"}
        assert verify_in_client(shown_secret(secret), headers, BODY)["type"] == "job.completed"


def test_we_verify_theirs() -> None:
    at = datetime.fromtimestamp(NOW, UTC)
    signature = Webhook(shown_secret(SECRET)).sign("msg_2", at, BODY.decode())
    headers = {
        "webhook-id": "msg_2",
        "webhook-timestamp": str(NOW),
        "webhook-signature": f"v1a,xx {signature}",
    }
    assert verify((OLD, SECRET), headers, BODY, NOW) == "msg_2"
    assert verify_in_client([shown_secret(SECRET)], headers, BODY, now=NOW)


GOOD = signed_headers((SECRET,), "msg_3", NOW, BODY)


@pytest.mark.parametrize(
    ("headers", "body", "at"),
    [
        (GOOD, BODY + b" ", NOW),
        (GOOD, BODY, NOW + 301),
        (GOOD, BODY, NOW - 301),
        (GOOD | {"webhook-id": "msg_4"}, BODY, NOW),
        (GOOD | {"webhook-timestamp": str(NOW + 1)}, BODY, NOW),
        (GOOD | {"webhook-timestamp": "soon"}, BODY, NOW),
        (GOOD | {"webhook-timestamp": "٣"}, BODY, NOW),
        (GOOD | {"webhook-timestamp": "9" * 5_000}, BODY, NOW),
        (GOOD | {"webhook-signature": "v1,"}, BODY, NOW),
        (GOOD | {"webhook-signature": "é"}, BODY, NOW),
        ({}, BODY, NOW),
        (signed_headers((OLD,), "msg_3", NOW, BODY), BODY, NOW),
    ],
)
def test_what_is_not_signed_in_time_is_refused(
    headers: dict[str, str], body: bytes, at: int
) -> None:
    with pytest.raises(BadSignature):
        verify((SECRET,), headers, body, at)
    with pytest.raises(InvalidWebhook):
        verify_in_client(shown_secret(SECRET), headers, body, now=at)


def test_tolerance_is_five_minutes() -> None:
    assert verify((SECRET,), GOOD, BODY, NOW + 300) == "msg_3"
    assert verify((SECRET,), GOOD, BODY, NOW - 300) == "msg_3"


@pytest.mark.parametrize("text", ["", "whsec_!", "c2VjcmV0", "whsec_é", "whsec_abc"])
def test_what_is_no_secret(text: str) -> None:
    assert secret_of(text) is None
    assert secret_of(shown_secret(SECRET)) == SECRET


def test_client_says_what_is_wrong_with_a_body_or_a_secret() -> None:
    headers = signed_headers((SECRET,), "msg_5", NOW, b"no json")
    with pytest.raises(InvalidWebhook, match="JSON"):
        verify_in_client(shown_secret(SECRET), headers, b"no json", now=NOW)
    with pytest.raises(ValueError, match="whsec_"):
        verify_in_client("whsec_!", GOOD, BODY, now=NOW)
