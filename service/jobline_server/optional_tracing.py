"""Makes what sends spans, where the settings say so: OpenTelemetry is an extra, and loaded then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobline._installing import how_to_install
from jobline_server.config import ConfigurationError, Settings

if TYPE_CHECKING:
    from jobline_server.tracing_port import Tracing


def tracing_of(settings: Settings, version: str) -> Tracing | None:
    """Returns what sends spans, or None. Raises `ConfigurationError` if it cannot be made."""
    if settings.tracing == "off":
        return None
    try:
        from jobline_server.tracing_port import make_tracing  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise ConfigurationError(
            f"tracing: otlp needs the extra ({error}): install it "
            + how_to_install("jobline-server", "otel")
        ) from None
    return make_tracing(version)
