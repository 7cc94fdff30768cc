"""Reads from a call what its caller shows: a header `authorization`, or a certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jobline_server.auth.refused import malformed

AUTHORIZATION = "authorization"
PEM = "x509_pem_cert"


class Credentials(NamedTuple):
    """The header ("" without), and the certificate (PEM; empty without)."""

    authorization: str
    certificate: bytes = b""


def authorization_of(context: Any) -> str:
    """Returns the header of a call; "" without. Raises `NotAuthenticated` for more than one: what
    stands before this server might have checked the other one.
    """
    found = None
    for key, value in context.invocation_metadata() or ():
        if key == AUTHORIZATION:
            if found is not None:
                raise malformed("authorization is there more than once")
            found = value
    if found is None or isinstance(found, str):
        return found or ""
    raise malformed("authorization must be text")


def certificate_of(context: Any) -> bytes:
    """Returns the caller's certificate (PEM), as the transport checked it; empty without."""
    found: Mapping[str, Sequence[bytes]] = context.auth_context() or {}
    return next(iter(found.get(PEM, ())), b"")
