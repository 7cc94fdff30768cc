"""Settings: every number and name that an operator may choose.

Flags win over the environment (`JOBLINE_<NAME>`), the environment over the file (TOML), the file
over the defaults here. An unknown name or a value that cannot be applied stops the start: no
setting is ignored in silence (G22).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import ByteSize, Field, ValidationError, model_validator
from pydantic_settings import (
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from jobline_server.environment import is_of_others
from jobline_server.nearest import nearest
from jobline_server.setting_partners import partner_problem
from jobline_server.setting_types import (
    Address,
    Calls,
    Directory,
    Jobs,
    KeptSeconds,
    LogLevel,
    Origins,
    Socket,
    ballast_problem,
)
from jobline_server.worker_settings import WorkerSettings
from jobline_server.wrong_settings import SEE_HELP, explain, in_file

PREFIX = "JOBLINE_"
FILE_VARIABLE = "JOBLINE_CONFIG"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


class ConfigurationError(Exception):
    """The settings cannot be applied; the message names the setting, why, and what is allowed."""


class Settings(WorkerSettings):
    """The settings of a server. Sizes may be written as `64MiB`."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="forbid", frozen=True, validate_default=True
    )

    data: Directory = Field(
        default=Path("jobline-data"),
        description="Directory of the store; made if there is none. One process at a time.",
    )
    shards: int = Field(
        default=0,
        ge=0,
        le=1_024,
        description="Number of shards, 1 … 1,024, fixed when the store is made. 0: as the store "
        "has it, 8 for a new one.",
    )
    accept_loss: bool = Field(
        default=False,
        description="Start although the store lost acknowledged data, for the one start after a "
        "refusal.",
    )

    listen: Address = Field(
        default="127.0.0.1:7070",
        description="HOST:PORT of gRPC; port 0 picks a free one. Empty: only the socket.",
    )
    unix_socket: Socket = Field(
        default=None, description="Path of a Unix socket for gRPC beside `listen`. Empty: none."
    )
    http: Address = Field(
        default="127.0.0.1:7071",
        description="HOST:PORT of calls over HTTP, metrics and health pages; port 0 picks a free "
        "one. Empty: none.",
    )
    http_calls: bool = Field(default=True, description="Serve calls over HTTP, not only pages.")
    http_cors_origins: Origins = Field(
        default="",
        description="Web pages that may call over HTTP, by origin, with commas: "
        "https://app.example,http://localhost:3000; or *. Empty: none.",
    )
    webhook_private_networks: bool = Field(
        default=False, description="Send webhooks also to private networks, and to this host."
    )
    max_http_connections: int = Field(
        default=2_000, ge=10, le=100_000, description="Connections to `http`, 10 … 100,000."
    )
    transport: Literal["auto", "grpcio", "native"] = Field(
        default="auto",
        description="The gRPC transport. auto: native where the extra is installed, else grpcio.",
    )
    uvloop: bool = Field(default=True, description="Run on uvloop.")
    dedicated_cpu: bool = Field(
        default=False,
        description="The server has its cores to itself: its threads let the loop finish before "
        "they run. More small calls a second; on a core that does other work, fewer.",
    )

    default_ack_level: Literal["memory", "buffered", "fsynced"] = Field(
        default="fsynced",
        description="The ack level of a push that sets none; a queue's minimum may raise it.",
    )
    max_payload_bytes: ByteSize = Field(
        default=ByteSize(10 * MIB),
        ge=KIB,
        le=512 * MIB,
        description="The largest payload, in bytes, 1 KiB … 512 MiB.",
    )
    max_waiting_jobs: int = Field(
        default=5_000_000,
        ge=1,
        le=1_000_000_000,
        description="Jobs that may wait, all queues together, 1 … 1,000,000,000.",
    )
    max_waiting_bytes: ByteSize = Field(
        default=ByteSize(4 * GIB),
        ge=MIB,
        le=1_024 * GIB,
        description="Payloads of live jobs and what was reported on them, in bytes, 1 MiB … 1 TiB.",
    )
    max_keys: int = Field(
        default=5_000_000,
        ge=1,
        le=1_000_000_000,
        description="Job keys that are kept, 1 … 1,000,000,000; about 300 bytes of memory each. As "
        "many unique keys may be throttled, about 200 bytes each.",
    )
    max_request_ids: int = Field(
        default=1_000_000,
        ge=1,
        le=1_000_000_000,
        description="Request ids that are kept, each for 10 minutes, 1 … 1,000,000,000; about 200 "
        "bytes of memory each.",
    )
    max_producer_calls: int = Field(
        default=1_000_000,
        ge=1,
        le=1_000_000_000,
        description="Producers of the last 10 minutes, and their calls that may be repeated, "
        "1 … 1,000,000,000; about 300 bytes of memory each.",
    )

    heartbeat_seconds: float = Field(
        default=30,
        ge=0.05,
        le=60,
        description="Both sides of a stream send a frame at least this often, in seconds, "
        "0.05 … 60; workers also three times within their shortest lease.",
    )
    disconnect_grace_seconds: float = Field(
        default=15,
        ge=0,
        le=3_600,
        description="How long a broken stream's jobs wait for its worker, in seconds, 0 … 3,600.",
    )
    batch_retention_seconds: KeptSeconds = Field(
        default=86_400,
        description="How long complete batches are kept, in seconds, 0 … 34,560,000.",
    )
    stream_max_age_seconds: float = Field(
        default=1_800,
        ge=1,
        le=86_400,
        description="Streams are asked to move after this long ± 10 %, in seconds, 1 … 86,400.",
    )
    max_calls: Calls = Field(default=20_000, description="Unary calls in flight, 1 … 1,000,000.")
    max_streams: Calls = Field(default=10_000, description="Open streams, 1 … 1,000,000.")
    max_pulls: Calls = Field(default=10_000, description="Long polls, 1 … 1,000,000.")
    max_waiters: Calls = Field(default=10_000, description="Open Wait calls, 1 … 1,000,000.")
    max_watchers: int = Field(
        default=1_000, ge=1, le=100_000, description="Open Watch calls and /events, 1 … 100,000."
    )
    max_scalers: int = Field(
        default=1_000,
        ge=1,
        le=100_000,
        description="Open StreamIsActive calls, one for each ScaledObject of KEDA, 1 … 100,000.",
    )

    client_rate: Jobs = Field(
        default=0, description="Jobs that a host may push per second, 0 … 1,000,000. 0: any."
    )
    client_burst: Jobs = Field(
        default=0, description="Jobs that it may have in store, 0 … 1,000,000. 0: those of 1 s."
    )

    checkpoint_journal_bytes: ByteSize = Field(
        default=ByteSize(256 * MIB),
        ge=64 * KIB,
        le=16 * GIB,
        description="Size of all journals together at which checkpoints fold them into tables, in "
        "bytes, 64 KiB … 16 GiB; a start reads at most about this much.",
    )
    low_space_bytes: ByteSize = Field(
        default=ByteSize(256 * MIB),
        ge=0,
        le=1_024 * GIB,
        description="Free space needed beside the ballast to restore it, in bytes, 0 … 1 TiB; "
        "without the ballast, pushes are refused.",
    )
    ballast_bytes: ByteSize = Field(
        default=ByteSize(64 * MIB),
        ge=0,
        le=64 * GIB,
        description="Reserved disk space, freed on a full disk so that acks, deletes and retention "
        "go on, in bytes, 0 … 64 GiB. 0: none; else at least 8 MiB and two payloads.",
    )

    drain_seconds: float = Field(
        default=30,
        ge=0,
        le=3_600,
        description="How long workers have to finish when the server stops, in seconds, 0 … 3,600.",
    )
    log_format: Literal["auto", "json", "console"] = Field(
        default="auto",
        description="Log lines for programs or for people. auto: for people on a terminal.",
    )
    log_level: LogLevel = Field(default="info", description="Lines below this are left out.")

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        ballast = ballast_problem(self.ballast_bytes, self.max_payload_bytes)
        if problem := ballast or partner_problem(self):
            raise ValueError(problem)
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[Any],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003  # pydantic's signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003  # as above
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Returns flags, environment and file, in this order."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    @property
    def listen_addresses(self) -> list[str]:
        """Returns the addresses at which gRPC is served."""
        socket = "" if self.unix_socket is None else f"unix:{self.unix_socket}"
        return [address for address in (self.listen, socket) if address]


def load_settings(flags: Mapping[str, Any] | None = None, file: Path | None = None) -> Settings:
    """Loads settings from all sources; ignores flags that are None. Raises `ConfigurationError`."""
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    refuse_unknown_variables(os.environ)
    file = file or (Path(os.environ[FILE_VARIABLE]) if os.environ.get(FILE_VARIABLE) else None)
    if file is not None and not file.is_file():
        raise ConfigurationError(f"there is no settings file {file}")
    try:
        settings = _with_file(file)(**given)
    except ValidationError as error:

        def origin(name: str, value: object) -> str:
            variable = f"{PREFIX}{name}".upper()
            if name in given:
                return f"--{name.replace('_', '-')} {given[name]}"
            if name in Settings.model_fields and variable in os.environ:
                return f"{variable}={os.environ[variable]}"
            return in_file(name, value, file)

        raise ConfigurationError(explain(error, Settings.model_fields, origin)) from None
    except (SettingsError, ValueError, OSError) as error:
        what = "the settings" if file is None else f"the settings file {file}"
        raise ConfigurationError(f"{what} cannot be read: {error}") from None
    if not settings.listen_addresses:
        raise ConfigurationError("listen: gRPC needs an address or a unix_socket")
    return settings


def _with_file(file: Path | None) -> type[Settings]:
    class Configured(Settings):
        model_config = SettingsConfigDict(toml_file=file)

    return Configured


def refuse_unknown_variables(environment: Mapping[str, str]) -> None:
    """Refuses unknown variables with our prefix, which may be misspelt settings."""
    known = {FILE_VARIABLE, *(f"{PREFIX}{name}".upper() for name in Settings.model_fields)}
    for name, value in environment.items():
        if name.startswith(PREFIX) and name not in known and not is_of_others(name, value):
            meant = nearest(name, known, prefix=PREFIX)
            raise ConfigurationError(f"{name}: no such setting{meant}; {SEE_HELP}")
