"""The certificate of the server, its key, and the authorities of its clients' certificates: three
PEM files, which are read again when they change. Connections that are open keep what they began
with.

All three are read before any is taken: a new certificate whose key is still the old one is not
used, and is looked at again two seconds later.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Self

from jobline_server.auth.file_marks import mark_of
from jobline_server.auth.handshake_failures import HandshakeFailures
from jobline_server.auth.tls_pairs import Pem, trouble_of

FILE_BYTES_MAX = 1 << 20
H2: Final = "h2"
PROTOCOLS = ("", H2)
# Those that name the three files.
SETTINGS = ("tls_certificate", "tls_key", "tls_client_ca")
# A handshake takes three packets; a caller that takes longer is none.
HANDSHAKE_SECONDS = 10.0


class WrongTlsFiles(Exception):
    """The files cannot be used; the message says which one, and why. `setting` names it."""

    def __init__(self, message: str, setting: str = SETTINGS[0]) -> None:
        super().__init__(message)
        self.setting = setting


@dataclass(frozen=True, slots=True)
class Loaded:
    """One reading of the files. `client_ca` is empty where clients show no certificate."""

    certificate: bytes
    key: bytes
    client_ca: bytes
    contexts: dict[str, ssl.SSLContext]
    """By the protocol that callers must speak; "" for any."""
    expires_s: float
    """When the first certificate of the chain ends."""
    own_begins_s: float
    own_ends_s: float
    """The dates of the first one, which is the server's own."""

    def trouble(self, now_s: float) -> str:
        """Returns why clients refuse the certificate at a time for its dates, "" if they do not."""
        if now_s < self.own_begins_s:
            return "the certificate is not valid yet: clients refuse it"
        if now_s > self.own_ends_s:
            return "the certificate has expired: clients refuse it"
        if now_s > self.expires_s:
            return "a certificate of the chain has expired: clients may refuse it"
        return ""


class TlsFiles:
    """The files, as they were read last. Raises `WrongTlsFiles` for some that cannot be used."""

    def __init__(self, certificate: Path, key: Path, client_ca: Path | None) -> None:
        self._paths = (certificate, key, client_ca)
        self.reload_failures = 0
        self.failures = HandshakeFailures()
        self._wrong = ""
        # Looked at before they are read: a change meanwhile is seen the next time.
        self._marks = self._look()
        self.now = self._read()

    @property
    def asks_clients(self) -> bool:
        """Returns whether clients must show a certificate."""
        return self._paths[2] is not None

    def _read(self) -> Loaded:
        from cryptography import x509  # noqa: PLC0415  # no server without TLS pays for it

        certificate, key, client_ca = (
            b"" if path is None else _bytes_of(path, setting)
            for path, setting in zip(self._paths, SETTINGS, strict=True)
        )
        try:
            contexts = {protocol: self._context_of(protocol) for protocol in PROTOCOLS}
            chain = x509.load_pem_x509_certificates(certificate)
        except (ssl.SSLError, OSError, ValueError) as error:
            raise self._no_pair(certificate, key, error) from None
        # Also where the file is empty: that must not be as if none had been named.
        if self.asks_clients:
            try:
                for context in contexts.values():
                    context.verify_mode = ssl.CERT_REQUIRED
                    context.load_verify_locations(cadata=client_ca.decode("ascii"))
            except (ssl.SSLError, ValueError):
                raise WrongTlsFiles(
                    f"{self._paths[2]} has no certificates (PEM)", SETTINGS[2]
                ) from None
        expires_s = min(one.not_valid_after_utc.timestamp() for one in chain)
        begins_s = chain[0].not_valid_before_utc.timestamp()
        ends_s = chain[0].not_valid_after_utc.timestamp()
        return Loaded(certificate, key, client_ca, contexts, expires_s, begins_s, ends_s)

    def _no_pair(self, certificate: bytes, key: bytes, error: Exception) -> WrongTlsFiles:
        reason = str(getattr(error, "reason", None) or "")
        path, path_of_key, _ = self._paths
        at, said = trouble_of(Pem(path, certificate), Pem(path_of_key, key), reason)
        return WrongTlsFiles(said, SETTINGS[at])

    def _context_of(self, protocol: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.sslobject_class = self.failures.connections()
        # A key with a passphrase is refused: asking for one would wait for ever.
        context.load_cert_chain(self._paths[0], self._paths[1], password=lambda: b"")
        if protocol:
            context.set_alpn_protocols([protocol])
        return context

    def reload(self) -> bool:
        """Reads the files again, if any has changed, or they could not be used the last time, for
        want of descriptors perhaps. Returns whether others are in force. Raises `WrongTlsFiles`,
        once for each change: what was read before stays then.
        """
        marks = self._look()
        if marks == self._marks and not self._wrong:
            return False
        try:
            loaded = self._read()
        except WrongTlsFiles as wrong:
            is_known = (marks, str(wrong)) == (self._marks, self._wrong)
            self._marks, self._wrong = marks, str(wrong)
            if is_known:
                return False
            self.reload_failures += 1
            raise
        if self._look() != marks:
            # Some may be those of before, others those that came meanwhile: the next look is soon.
            return False
        self.now, self._marks, self._wrong = loaded, marks, ""
        return True

    def context(self, protocol: Literal["h2", ""] = "") -> ssl.SSLContext:
        """Returns a context for a listener, which uses for each new connection what was read
        last. With a `protocol`, callers are told that it is spoken (ALPN).
        """
        return _Newest(self, protocol)

    def _look(self) -> list[object]:
        return [None if path is None else mark_of(path) for path in self._paths]


class _Newest(ssl.SSLContext):
    """A context that begins each connection with that of the newest files. With one of its own, in
    which a callback exchanges certificates, it would have one set of session tickets for ever: who
    has a ticket is not asked for a certificate again, also if its authority was taken out.
    """

    _files: TlsFiles
    _protocol: str

    def __new__(cls, files: TlsFiles, protocol: str) -> Self:
        made = super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)
        made._files, made._protocol = files, protocol
        return made

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Begins a connection, as loops do it."""
        newest = self._files.now.contexts[self._protocol]
        return newest.wrap_bio(incoming, outgoing, server_side, server_hostname, session)


def _bytes_of(path: Path, setting: str) -> bytes:
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise WrongTlsFiles(f"{path}: has more than {FILE_BYTES_MAX >> 20} MiB", setting)
        return path.read_bytes()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise WrongTlsFiles(f"{path}: {why}", setting) from None


def certificate_of(connection: ssl.SSLObject) -> bytes:
    """Returns the certificate that a client showed (PEM); empty where it showed none."""
    found = connection.getpeercert(binary_form=True)
    return b"" if found is None else ssl.DER_cert_to_PEM_cert(found).encode("ascii")
