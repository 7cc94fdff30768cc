"""Says why two files are no certificate and its key: OpenSSL says `PEM lib` of most mistakes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

CERTIFICATE: Final = 0
KEY: Final = 1
# OpenSSL compares the key with the first certificate alone.
_MISMATCHES = frozenset({"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"})


@dataclass(frozen=True, slots=True)
class Pem:
    """A file, and what it contains."""

    path: Path
    content: bytes

    @property
    def has_certificate(self) -> bool:
        """Returns whether a certificate begins in it."""
        return b"-----BEGIN CERTIFICATE-----" in self.content

    @property
    def has_key(self) -> bool:
        """Returns whether a private key begins in it, of whatever kind."""
        return b"PRIVATE KEY-----" in self.content

    @property
    def has_passphrase(self) -> bool:
        """Returns whether a key in it is encrypted, in the new form or in the old one."""
        new, old = b"BEGIN ENCRYPTED PRIVATE KEY", b"Proc-Type: 4,ENCRYPTED"
        return new in self.content or old in self.content


def trouble_of(certificate: Pem, key: Pem, reason: str) -> tuple[int, str]:
    """Returns which of two files that OpenSSL refused is wrong, and a sentence that says why and
    what to do. `reason` is that of OpenSSL, "" if it gave none.
    """
    is_exchanged = not (certificate.has_certificate or key.has_key)
    if is_exchanged and certificate.has_key and key.has_certificate:
        return CERTIFICATE, (
            f"{certificate.path} holds a key, and {key.path} a certificate: exchange "
            "tls_certificate and tls_key"
        )
    if not certificate.has_certificate:
        found = "holds a key, and no certificate" if certificate.has_key else "has no certificate"
        return CERTIFICATE, f"{certificate.path} {found}: name the file of the certificate (PEM)"
    if not key.has_key:
        found = "holds a certificate, and no key" if key.has_certificate else "has no private key"
        return KEY, f"{key.path} {found}: name the file of the certificate's key (PEM)"
    if key.has_passphrase:
        return KEY, (
            f"{key.path}: the key has a passphrase, for which a server cannot ask: write one "
            f"without (openssl pkey -in {key.path} -out FILE)"
        )
    if reason in _MISMATCHES:
        return CERTIFICATE, (
            f"{certificate.path} and {key.path} do not belong together: the key must be that of "
            "the first certificate in its file, which is the server's own"
        )
    why = f" ({reason})" if reason else ""
    return CERTIFICATE, (
        f"{certificate.path} and {key.path} are no certificate and its key{why}: one of them is "
        "damaged or half written; write both again (PEM)"
    )
