"""Page tokens: where the next page of a list begins, bound to the request.

A token is a digest of the request and the last entry of the page before: `<digest>.<cursor>`. The
digest leaves out the page, so a token is valid only for the same method and filter. It is neither
secret nor signed.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.rpc import limits

DIGEST_BYTES = 6


def cursor_of(request: Any) -> str:
    """Returns the entry after which the requested page begins; "" for the first page. Raises
    `Refused` with INVALID_PAGE_TOKEN for a token of another list.
    """
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
    """Returns the token of the page after `cursor`; "" where there is none."""
    return f"{_digest(request)}.{cursor}" if cursor else ""


def _digest(request: Any) -> str:
    """Returns the digest of a request without its page token and page size, which may change."""
    copied = type(request)()
    copied.CopyFrom(request)
    copied.ClearField("page_token")
    copied.ClearField("page_size")
    content = copied.SerializeToString(deterministic=True)
    person = request.DESCRIPTOR.name.encode()[:16]
    return blake2b(content, digest_size=DIGEST_BYTES, person=person).hexdigest()
