"""Handshakes of TLS that failed, by what OpenSSL says of each: who came did not trust this server,
showed no certificate, or one that this server does not know. All ports with TLS count here
but the gRPC port of the transport `grpcio`, which says nothing of its handshakes.
"""

from __future__ import annotations

import ssl
from collections import Counter

# OpenSSL has some hundred reasons, and callers choose among them; the others share a name.
REASONS_MAX = 32
OTHER = "OTHER"


class HandshakeFailures:
    """Counts them: `counts` is by reason, as `CERTIFICATE_VERIFY_FAILED`."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def note(self, error: ssl.SSLError) -> None:
        """Counts one."""
        reason = reason_of(error)
        if reason not in self.counts and len(self.counts) >= REASONS_MAX:
            reason = OTHER
        self.counts[reason] += 1

    def connections(self) -> type[ssl.SSLObject]:
        """Returns the class of connections whose handshakes are counted, for a context."""
        failures = self

        class Watched(ssl.SSLObject):
            def do_handshake(self) -> None:
                try:
                    super().do_handshake()
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    raise
                except ssl.SSLError as error:
                    failures.note(error)
                    raise

        return Watched


def reason_of(error: ssl.SSLError) -> str:
    """Returns OpenSSL's name for what went wrong; some errors have none."""
    return getattr(error, "reason", None) or OTHER
