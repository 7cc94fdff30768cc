"""Makes the exporter of the history. Only a server that exports loads it, with pyarrow."""

from __future__ import annotations

from jobline_server.config import ConfigurationError, Settings
from jobline_server.history.destination import destination_of, without_credentials
from jobline_server.history.spool import Spool
from jobline_server.runtime.clock import Clock
from jobline_server.runtime.exporter import Exporter, ExporterSettings
from jobline_server.telemetry.log import logger

LOG = logger("app")
FOLDER = "history"


def make_exporter(settings: Settings, clock: Clock) -> Exporter:
    """Returns the exporter, not started. Raises `ConfigurationError` if what it needs is not
    installed, or if the destination's URL cannot be understood.
    """
    try:
        destination = destination_of(settings.history)
    except (ImportError, ValueError) as error:
        why = without_credentials(f"{settings.history}: {error}")
        raise ConfigurationError(f"history: {why}") from None
    spool = Spool(settings.data / FOLDER, int(settings.history_spool_bytes))
    to = without_credentials(settings.history)
    LOG.info("exporting the history", to=to, files_left=len(spool))
    return Exporter(
        spool,
        destination,
        ExporterSettings(settings.history_seconds, int(settings.history_file_bytes)),
        clock,
    )
