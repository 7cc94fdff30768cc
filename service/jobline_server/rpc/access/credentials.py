"""Reads from a call what its caller shows: a header `authorization`, or a certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from jobline_server.auth.refused import malformed

AUTHORIZATION = "authorization"


class Credentials(NamedTuple):
    """The header ("" without), and the names of the certificate."""

    authorization: str
    names: tuple[str, ...] = ()


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


def certificate_names(context: Any) -> tuple[str, ...]:
    """Returns the names of the caller's certificate, as the transport checked it: its SANs, or its
    common name where it has none.
    """
    found: dict[str, Sequence[bytes]] = context.auth_context() or {}
    names = found.get("x509_subject_alternative_name") or found.get("x509_common_name") or ()
    return tuple(name.decode("utf-8", "replace") for name in names)
