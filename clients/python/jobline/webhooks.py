"""Verifies webhooks that a Jobline server sent, or anybody who signs by Standard Webhooks 1.0.

    from jobline.webhooks import verify

    event = verify("whsec_…", request.headers, request.body)
    if event["type"] == "job.completed": …

It needs nothing but the standard library, and no connection.
"""

from __future__ import annotations

import hmac
import json
import time
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Iterable, Mapping
from typing import Any

TOLERANCE_SECONDS = 300
_DIGITS_MAX = 12


class InvalidWebhook(ValueError):
    """The message is not signed with the secret, or not sent in time: refuse it with 401."""


def verify(
    secret: str | Iterable[str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance: float = TOLERANCE_SECONDS,
    now: float | None = None,
) -> Any:
    """Returns what was sent, read as JSON. `body` are the very bytes that came in. The header
    `webhook-id` is the same when a message comes again: remember it to handle each once. Raises
    InvalidWebhook.

    - `secret`: as `client.webhooks.create` returned it; or several, any of which may have signed.
    - `tolerance`: by how many seconds the time of the message may differ from `now`, in seconds
      since 1970, by default the clock's.
    """
    found = {name.lower(): value for name, value in headers.items()}
    message_id, said = found.get("webhook-id", ""), found.get("webhook-timestamp", "")
    signatures = found.get("webhook-signature", "").split()
    if not (said.isascii() and said.isdecimal()) or len(said) > _DIGITS_MAX or not message_id:
        raise InvalidWebhook("the headers webhook-id and webhook-timestamp are required")
    if abs((time.time() if now is None else now) - int(said)) > tolerance:
        raise InvalidWebhook("the message is too old, or our clocks differ")
    content = f"{message_id}.{said}.".encode() + body
    secrets = [secret] if isinstance(secret, str) else list(secret)
    wanted = [f"v1,{_signature(one, content)}".encode() for one in secrets]
    given = [one.encode() for one in signatures]
    # All are compared, so that the time says nothing about which one came close.
    matches = [hmac.compare_digest(one, other) for one in given for other in wanted]
    if not any(matches):
        raise InvalidWebhook("no signature of the message is made with the secret")
    try:
        return json.loads(body)
    except ValueError:
        raise InvalidWebhook("the body is no JSON") from None


def _signature(secret: str, content: bytes) -> str:
    try:
        key = b64decode(secret.removeprefix("whsec_"), validate=True)
    except Error:
        raise ValueError("a secret is whsec_ and base64") from None
    return b64encode(hmac.digest(key, content, "sha256")).decode()
