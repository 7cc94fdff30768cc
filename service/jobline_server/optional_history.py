"""Makes the exporter of the history, where the settings say so: numpy and pyarrow are an extra, and
loaded then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobline._installing import how_to_install
from jobline_server.config import ConfigurationError, Settings
from jobline_server.history.destination import is_in
from jobline_server.runtime.clock import Clock

if TYPE_CHECKING:
    from jobline_server.runtime.exporter import Exporter


def history_of(settings: Settings, clock: Clock) -> Exporter | None:
    """Returns the exporter, or None. Raises `ConfigurationError` if it cannot be made."""
    if not settings.history:
        return None
    if is_in(settings.history, settings.data):
        raise ConfigurationError(
            f"history: {settings.history} is in the data directory, and would be lost with it"
        )
    try:
        # pyarrow takes as long to load as all the rest.
        from jobline_server.history_port import make_exporter  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise ConfigurationError(
            f"history: needs the extra ({error}): install it "
            + how_to_install("jobline-server", "history")
        ) from None
    return make_exporter(settings, clock)
