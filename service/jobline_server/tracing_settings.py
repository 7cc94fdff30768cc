"""Settings of tracing."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings


class TracingSettings(BaseSettings):
    """Whether spans of calls are sent; where to, say OpenTelemetry's own variables."""

    tracing: Literal["off", "otlp"] = Field(
        default="off",
        description="Send a span of each call by OTLP, as OTEL_* variables say; needs the extra "
        "`otel`.",
    )
