"""A certificate for servers that are measured by TLS, and what their callers trust."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc
import trustme

HOST = "localhost"


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate of its own authority. `flags`: what a server with it is started with."""

    flags: tuple[str, ...]
    credentials: grpc.ChannelCredentials
    context: ssl.SSLContext


def make_certificate(folder: Path) -> Certificate:
    """Makes one, in files of a folder."""
    authority = trustme.CA()
    issued = authority.issue_cert(HOST, "127.0.0.1")
    chain, key = folder / "server.pem", folder / "server.key"
    chain.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(key)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    context.set_alpn_protocols(["h2"])
    return Certificate(
        ("--tls-certificate", str(chain), "--tls-key", str(key)),
        grpc.ssl_channel_credentials(authority.cert_pem.bytes()),
        context,
    )
