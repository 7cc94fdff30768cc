"""Page tokens: where the next page of a list begins, bound to what was asked.

A token holds a digest of the request without its page, so that it opens only the list it came
from: the same method, the same filter. It is no secret and no signature; behind the digest stands
the last entry of the page before, as the runtime wants it.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.rpc import limits

DIGEST_BYTES = 6


def cursor_of(request: Any) -> str:
    """The entry after which the page begins that a request asks for; "" for the first page. Raises
    `Refused` with INVALID_PAGE_TOKEN for a token of another list."""
    token: str = request.page_token
    if not token:
        return ""
    digest, dot, cursor = token.partition(".")
    if (
        len(token) > limits.TOKEN_CHARACTERS_MAX
        or not token.isascii()
        or not (dot and cursor)
        or digest != _digest(request)
    ):
        message = "is not of this list: its method or filter was another"
        raise Refused(RefusalKind.INVALID_PAGE_TOKEN, message, field="page_token")
    return cursor


def token_of(request: Any, cursor: str) -> str:
    """The token of the page after `cursor`; "" where there is none."""
    return f"{_digest(request)}.{cursor}" if cursor else ""


def _digest(request: Any) -> str:
    """Of a request as it is but for its page: the size of pages may change on the way."""
    asked = type(request)()
    asked.CopyFrom(request)
    asked.ClearField("page_token")
    asked.ClearField("page_size")
    content = asked.SerializeToString(deterministic=True)
    person = request.DESCRIPTOR.name.encode()[:16]
    return blake2b(content, digest_size=DIGEST_BYTES, person=person).hexdigest()
