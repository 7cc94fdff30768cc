"""Reads the names of clients' certificates: by one rule, whichever transport checked them.

Transports know names, too, but not the same ones: some count addresses, and some take the common
name beside what they leave out. So they hand over the certificate, and it is read here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509

# Certificates whose names are kept: each call shows that of its connection.
KEPT_MAX = 4_096


@lru_cache(maxsize=KEPT_MAX)
def names_of(certificate: bytes) -> tuple[str, ...]:
    """Returns the names of a certificate (PEM): its SANs that are names of hosts, URIs or addresses
    of e-mail; its common name only where it has no SANs at all, of whatever kind. One that cannot
    be read has none.
    """
    from cryptography import x509  # noqa: PLC0415  # no server without TLS pays for it

    kinds = x509.DNSName | x509.UniformResourceIdentifier | x509.RFC822Name
    try:
        loaded = x509.load_pem_x509_certificate(certificate)
        sans = list(_sans_of(loaded))
        names: list[str | bytes] = [one.value for one in sans if isinstance(one, kinds)]
        if not sans:
            # An empty list of SANs is none, too.
            common = loaded.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
            names = [one.value for one in common]
    except (
        ValueError,
        x509.InvalidVersion,
        x509.DuplicateExtension,
        x509.UnsupportedGeneralNameType,
    ):
        return ()
    return tuple(name for name in names if isinstance(name, str) and name.isprintable())


def _sans_of(loaded: x509.Certificate) -> Iterable[x509.GeneralName]:
    from cryptography import x509  # noqa: PLC0415  # as above

    try:
        return loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
