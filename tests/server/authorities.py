"""Certificates for tests: an authority, a server's files, and clients."""

from __future__ import annotations

import datetime as dt
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import trustme
from grpc import aio

HOST = "localhost"


@dataclass
class Files:
    """The files of a server, in a folder."""

    folder: Path

    @property
    def certificate(self) -> Path:
        return self.folder / "server.pem"

    @property
    def key(self) -> Path:
        return self.folder / "server.key"

    @property
    def client_ca(self) -> Path:
        return self.folder / "clients.pem"

    def write(self, issued: trustme.LeafCert) -> None:
        """Writes a certificate and its key, one after the other as an operator would."""
        chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
        self.key.write_bytes(issued.private_key_pem.bytes())
        self.certificate.write_bytes(chain)

    def settings(self, *, mutual: bool = False) -> dict[str, Any]:
        """The settings of a server with them."""
        found = {"tls_certificate": self.certificate, "tls_key": self.key}
        return found | ({"tls_client_ca": self.client_ca} if mutual else {})


def expired(authority: trustme.CA) -> trustme.LeafCert:
    """A certificate whose time is over."""
    return authority.issue_cert(HOST, not_after=dt.datetime(2020, 1, 1, tzinfo=dt.UTC))


def credentials(
    authority: trustme.CA, client: trustme.LeafCert | None = None
) -> grpc.ChannelCredentials:
    """What a client of gRPC trusts, and shows."""
    roots = authority.cert_pem.bytes()
    if client is None:
        return grpc.ssl_channel_credentials(roots)
    chain = b"".join(blob.bytes() for blob in client.cert_chain_pems)
    return grpc.ssl_channel_credentials(roots, client.private_key_pem.bytes(), chain)


def secure_channel(address: str, given: grpc.ChannelCredentials, name: str = HOST) -> aio.Channel:
    """A channel by TLS, to a server under a name."""
    options: list[tuple[str, str | int]] = [
        ("grpc.ssl_target_name_override", name),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    return grpc.aio.secure_channel(address, given, options=options)


def context_of(authority: trustme.CA, client: trustme.LeafCert | None = None) -> ssl.SSLContext:
    """What a client of HTTP trusts, and shows."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    if client is not None:
        client.configure_cert(context)
    return context
