"""The settings of who may come in: authentication and TLS; `config` has all others."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from jobline_server.history_settings import HistorySettings
from jobline_server.setting_types import Address, File


class DoorSettings(HistorySettings):
    """Who may call, how many may be connected, and what is sealed on the way."""

    tls_certificate: File = Field(
        default=None,
        description="Certificate chain (PEM) for gRPC and HTTP by TLS; read again when it changes. "
        "Empty: plaintext. A Unix socket is always plain.",
    )
    tls_key: File = Field(default=None, description="The key of the certificate (PEM).")
    tls_client_ca: File = Field(
        default=None,
        description="Authorities (PEM) whose certificates clients must show, for gRPC and HTTP. "
        "Empty: they show none.",
    )
    health_listen: Address = Field(
        default="",
        description="HOST:PORT of a plaintext port with grpc.health.v1 alone, for probes. Empty: "
        "none.",
    )

    max_connections: int = Field(
        default=10_000,
        ge=100,
        le=1_000_000,
        description="Connections to all ports together, 100 … 1,000,000. Beyond them those are "
        "closed that have been silent longest, of the hosts with the most.",
    )
    auth: File = Field(
        default=None,
        description="File (TOML) of API keys, JWT issuers, certificates and roles; who is not "
        "allowed there is refused. Read again when it changes. Empty: everybody may call.",
    )

    @model_validator(mode="after")
    def _tls_files(self) -> Self:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key: both or none")
        if self.tls_client_ca is not None and self.tls_certificate is None:
            raise ValueError("tls_client_ca: needs tls_certificate and tls_key")
        return self
