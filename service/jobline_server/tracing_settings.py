"""Settings of tracing."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class TracingSettings(BaseSettings):
    """Whether spans of calls are sent; where to, say OpenTelemetry's own variables."""

    # Only the class that reads the settings gets a schema, not each that adds some to others.
    model_config = SettingsConfigDict(defer_build=True)

    tracing: Literal["off", "otlp"] = Field(
        default="off",
        description="Send a span of each call by OTLP, as OTEL_* variables say; needs the extra "
        "`otel`.",
    )
