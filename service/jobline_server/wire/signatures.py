"""Signatures of webhooks, by Standard Webhooks 1.0: HMAC-SHA256 over id, time and body.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Mapping, Sequence

PREFIX = "whsec_"
VERSION = "v1"
# A message may be this old, or this far ahead of our clock.
TOLERANCE_SECONDS = 300
# The headers of a message.
ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
# Signatures of one message that are compared: those of a few secrets.
SIGNATURES_MAX = 16
DIGITS_MAX = 12


class BadSignature(Exception):
    """The message is not signed with a secret of ours, or not in time; the text says why."""


def sign(secret: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """Returns the signature of a message, sent at a time in seconds since 1970."""
    content = f"{message_id}.{timestamp}.".encode() + body
    return f"{VERSION},{b64encode(hmac.digest(secret, content, 'sha256')).decode()}"


def signed_headers(
    secrets: Sequence[bytes], message_id: str, timestamp: int, body: bytes
) -> dict[str, str]:
    """Returns the headers of a message, with a signature for each secret."""
    signatures = [sign(secret, message_id, timestamp, body) for secret in secrets]
    return {ID: message_id, TIMESTAMP: str(timestamp), SIGNATURE: " ".join(signatures)}


def verify(
    secrets: Sequence[bytes], headers: Mapping[str, str], body: bytes, now_seconds: int
) -> str:
    """Returns the id of a message that is signed with one of the secrets, and in time. `headers`
    are by their lower-case names. Raises `BadSignature`.
    """
    message_id, said, signatures = (headers.get(name, "") for name in (ID, TIMESTAMP, SIGNATURE))
    if not message_id or not said or not signatures:
        raise BadSignature(f"{ID}, {TIMESTAMP} and {SIGNATURE} are required")
    if not (said.isascii() and said.isdecimal()) or len(said) > DIGITS_MAX:
        raise BadSignature(f"{TIMESTAMP} is no time in seconds")
    if abs(now_seconds - int(said)) > TOLERANCE_SECONDS:
        raise BadSignature(f"{TIMESTAMP} is more than {TOLERANCE_SECONDS} s from now")
    given = [one.encode() for one in signatures.split()[:SIGNATURES_MAX]]
    wanted = [sign(secret, message_id, int(said), body).encode() for secret in secrets]
    # All are compared, so that the time says nothing about which one came close.
    matches = [hmac.compare_digest(one, other) for one in given for other in wanted]
    if not any(matches):
        raise BadSignature(f"{SIGNATURE} is none of this body with the secret")
    return message_id


def shown_secret(secret: bytes) -> str:
    """Returns a secret as users see it."""
    return PREFIX + b64encode(secret).decode()


def secret_of(text: str) -> bytes | None:
    """Returns the bytes of a secret; None if the text is none."""
    if not text.startswith(PREFIX):
        return None
    try:
        return b64decode(text.removeprefix(PREFIX), validate=True)
    except (Error, ValueError):
        return None
