"""Settings that do nothing without another one: alone they would be ignored in silence (G22)."""

from __future__ import annotations

from typing import Any

# By setting, the one that it needs.
PARTNERS = {
    "backup_every_seconds": "backup_to",
    "backup_keep": "backup_to",
    "history_seconds": "history",
    "history_file_bytes": "history",
    "history_spool_bytes": "history",
    "client_burst": "client_rate",
    "http_cors_origins": "http",
}


def partner_problem(settings: Any) -> str:
    """Returns why settings that were given, not those of defaults, do nothing; "" if all do
    something. 0 and "" ask for nothing.
    """
    for name, partner in PARTNERS.items():
        is_given = name in settings.model_fields_set and getattr(settings, name)
        if is_given and not getattr(settings, partner):
            return f"{name}: does nothing without {partner}: set both, or leave it out"
    return ""
