"""The settings of the history; `config` has all others."""

from __future__ import annotations

from typing import Self

from pydantic import ByteSize, Field, model_validator

from jobline_server.tracing_settings import TracingSettings

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


class HistorySettings(TracingSettings):
    """Whether, where and how often events are exported."""

    history: str = Field(
        default="",
        description="Directory, outside of `data`, or fsspec URL to which events are exported as "
        "Parquet; needs the extra `history`. Empty: none are.",
    )
    history_seconds: float = Field(
        default=60,
        ge=1,
        le=3_600,
        description="Files of the history are finished this often, in seconds, 1 … 3,600.",
    )
    history_file_bytes: ByteSize = Field(
        default=ByteSize(64 * MIB),
        ge=64 * KIB,
        le=4 * GIB,
        description="Files of the history are finished earlier when all together have this size, "
        "in bytes, 64 KiB … 4 GiB, at most those of the spool; they are in memory until then.",
    )
    history_spool_bytes: ByteSize = Field(
        default=ByteSize(4 * GIB),
        ge=MIB,
        le=1_024 * GIB,
        description="Files that wait in the data directory for the destination, in bytes, 1 MiB … "
        "1 TiB; beyond that the oldest are lost.",
    )

    @model_validator(mode="after")
    def _file_fits(self) -> Self:
        if self.history_file_bytes > self.history_spool_bytes:
            raise ValueError(
                f"history_file_bytes: at most the {self.history_spool_bytes // MIB:,} MiB of "
                "history_spool_bytes"
            )
        return self
